#include "platform/cpu_affinity.h"

#include <string>
#include <utility>

#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>

namespace tactus {

CpuAffinity AssignCores(std::vector<int> allowed, int lanes, int cores_each) {
  CpuAffinity plan;
  const auto wanted = static_cast<std::size_t>(lanes) * static_cast<std::size_t>(cores_each);
  if (wanted < 1 || allowed.size() < wanted + 1) return plan;
  for (int i = 0; i < lanes; ++i) {
    plan.lanes.emplace_back(allowed.end() - cores_each, allowed.end());
    allowed.resize(allowed.size() - static_cast<std::size_t>(cores_each));
  }
  plan.others = std::move(allowed);
  return plan;
}

std::vector<int> AllowedCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &set)) cores.push_back(i);
  }
  return cores;
}

void PinThisThread(const std::vector<int>& cores) { PinThread(pthread_self(), cores); }

void PinThread(std::thread::native_handle_type thread, const std::vector<int>& cores) {
  if (cores.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(core, &set);
  pthread_setaffinity_np(thread, sizeof set, &set);
}

void NameThisThread(std::string_view name) {
  pthread_setname_np(pthread_self(), std::string(name.substr(0, 15)).c_str());
}

void WaitForTurns() {
  const sched_param none{};
  sched_setscheduler(0, SCHED_BATCH, &none);
}

void SharpenTimers() { prctl(PR_SET_TIMERSLACK, 1); }

}  // namespace tactus
