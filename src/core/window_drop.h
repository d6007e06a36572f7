// Which heads of a queue are given up so that a lane's batches keep their planned size.
#pragma once

#include <algorithm>

namespace tactus {

// Nexus's window drop: the first position of the queue from which a planned batch would end in
// time; 0 where there is none, or where the lane may not take a planned batch: then a smaller one
// goes. What lies before it is lost to the other lanes as well, which come by later: each gives up
// its part of it. `fits(head, batch)` says whether the batch from there would.
int WindowDrop(int waiting, int planned, int mine, auto fits) {
  if (mine < planned) return 0;
  const int last = waiting - planned;
  int head = 0;
  while (head <= last && !fits(head, planned)) ++head;
  return head <= last ? head : 0;
}

// Ours, for plans whose cycle and batch fill the SLO: the position from which the most are served,
// those given up before it subtracted; the first of several. A planned batch that falls a little
// behind would leave heads that allow it only small batches, and these fall further behind: with
// the window drop, which wants a whole planned batch to wait, the lane never recovers.
int MostServedFrom(int planned, int mine, auto fits) {
  int best = 0;
  int most = 0;
  for (int head = 0; head < mine; ++head) {
    int batch = std::min(planned, mine - head);
    if (head > 0 && batch - head <= most) break;
    while (batch > 0 && !fits(head, batch)) --batch;
    if (batch - head <= most) continue;
    best = head;
    most = batch - head;
    if (batch == std::min(planned, mine - head) && head == 0) break;
  }
  return best;
}

}  // namespace tactus
