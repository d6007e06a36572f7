#include "cluster/control/codec.h"

#include <algorithm>
#include <string>

#include "cluster/control/message_fields.h"
#include "cluster/models/digest.h"
#include "cluster/models/manifest.h"
#include "control.pb.h"

namespace tactus {

void Fields(auto& io, Of<decltype(io), PlanId> id) { io(id.term, id.epoch); }
void Fields(auto& io, Of<decltype(io), ModelRef> ref) {
  io(ref.name, ref.digest);
  io.Check(IsPlainName(ref.name), "name");
  io.Check(Digest::Parse(ref.digest).has_value(), "digest");
}
void Fields(auto& io, Of<decltype(io), SliceInstance> instance) {
  io(instance.pipeline, instance.stage, instance.model, instance.accelerator, instance.stream,
     instance.batch, instance.offset, instance.length, instance.cycle);
}
void Fields(auto& io, Of<decltype(io), RouteTarget> target) { io(target.node, target.weight); }
void Fields(auto& io, Of<decltype(io), SliceRoute> route) {
  io(route.pipeline, route.stage, route.model, route.to);
}
void Fields(auto& io, Of<decltype(io), FleetSlice> slice) {
  io(slice.id, slice.instances, slice.routes, slice.models);
}
void Fields(auto& io, Of<decltype(io), PeerPlace> peer) { io(peer.node, peer.address); }
void Fields(auto& io, Of<decltype(io), ModelRate> rate) { io(rate.model, rate.rate_rps); }
void Fields(auto& io, Of<decltype(io), MeasuredLink> link) {
  io(link.to, link.reading.mbps, link.reading.rtt);
}
void Fields(auto& io, Of<decltype(io), NodeReport> report) {
  std::string trouble = report.trouble;
  if constexpr (!kReads<decltype(io)>) {
    constexpr std::size_t kMostTrouble = 1000;
    // Names of files are in it: not always text that a message may hold.
    trouble.resize(std::min(trouble.size(), kMostTrouble));
    std::ranges::replace_if(
        trouble, [](char c) { return (c & 0x80) != 0; }, '?');
  }
  io(report.term, report.committed, report.prepared, report.retired, report.refused,
     report.prepared_ready, report.committed_ready, report.failing, report.old_in_flight,
     Any(trouble), report.http, report.grpc, report.peers, report.peer, report.fetched);
  if constexpr (kReads<decltype(io)>) report.trouble = std::move(trouble);
}
void Fields(auto& io, Of<decltype(io), NodeHello> hello) { io(hello.report, hello.slice); }
void Fields(auto& io, Of<decltype(io), NodeBeat> beat) { io(beat.report, beat.rates, beat.links); }
void Fields(auto& io, Of<decltype(io), FromNode> message) {
  io(message.node, message.who.home, message.who.count, message.sequence);
  io.Check(message.who.count != 0, "count");
  io.OneOf(message.what);
}
void Fields(auto& io, Of<decltype(io), WelcomeOrder> welcome) { io(welcome.beat_every); }
void Fields([[maybe_unused]] auto& io, Of<decltype(io), GreetOrder>) {}
void Fields(auto& io, Of<decltype(io), DenyOrder> deny) { io(Any(deny.why)); }
void Fields(auto& io, Of<decltype(io), PrepareOrder> prepare) { io(prepare.slice); }
void Fields(auto& io, Of<decltype(io), CommitOrder> commit) { io(commit.id, commit.peers); }
void Fields(auto& io, Of<decltype(io), RetireOrder> retire) { io(retire.id, retire.keep); }
void Fields(auto& io, Of<decltype(io), AbandonOrder> abandon) {
  io(abandon.id, abandon.keep_all, abandon.keep);
}
void Fields(auto& io, Of<decltype(io), PeersOrder> order) { io(order.peers); }
void Fields(auto& io, Of<decltype(io), ToNode> message) {
  io(message.node, message.to.home, message.to.count, message.term);
  io.OneOf(message.what);
}
void Fields(auto& io, Of<decltype(io), LeaderView::Node> node) {
  std::vector<ModelRate> rates;
  if constexpr (!kReads<decltype(io)>) {
    for (const auto& [model, rps] : node.rates) rates.push_back({model, rps});
  }
  io(Any(node.name), node.standing, Any(node.silent), node.report, node.slice, rates,
     Any(node.left_out), node.links);
  io.Check(node.standing <= Standing::kDead, "standing");
  if constexpr (kReads<decltype(io)>) {
    for (ModelRate& each : rates) node.rates[std::move(each.model)] = each.rate_rps;
  }
}
void Fields(auto& io, Of<decltype(io), LostPipeline> lost) { io(lost.pipeline, Any(lost.why)); }
void Fields(auto& io, Of<decltype(io), LeaderView> view) {
  io(view.term, view.serving, view.rolling, Any(view.phase), Any(view.problem), view.lost,
     view.nodes);
}
void Fields(auto& io, Of<decltype(io), NodeKept> kept) {
  io(kept.who.home, kept.who.count, kept.term, kept.slice, kept.held, kept.peers, kept.loaded);
  io.Check(kept.who.home != 0, "home");
}
void Fields(auto& io, Of<decltype(io), LeaderKept> kept) { io(kept.term, kept.epoch); }
void Fields(auto& io, Of<decltype(io), KeptWorker> kept) {
  io(kept.process.pid, kept.process.started, kept.http, kept.grpc, kept.metrics, kept.peer,
     Any(kept.models));
  io.Check(kept.process.pid > 1, "pid");
}
void Fields(auto& io, Of<decltype(io), WorkerTarget> target) {
  io(target.node, target.address, target.weight, target.here);
}
void Fields(auto& io, Of<decltype(io), WorkerRoute> route) {
  io(route.pipeline, route.stage, route.model, route.to);
}
void Fields(auto& io, Of<decltype(io), WorkerRoutes> routes) { io(routes.plan, routes.routes); }
void Fields(auto& io, Of<decltype(io), std::vector<MeasuredLink>> links) { io(links); }

template <class Wire>
void Encode(const Meaning<Wire>& message, Wire& out) {
  FieldWriter writer(out);
  Fields(writer, message);
}

template <class Wire>
Expected<Meaning<Wire>> Decode(const Wire& in) {
  Meaning<Wire> message;
  std::string wrong;
  FieldReader reader(in, wrong);
  Fields(reader, message);
  if (!wrong.empty()) return InvalidArgument("invalid " + wrong + " in a message");
  return message;
}

std::size_t BytesOf(const FleetSlice& slice) {
  control::Slice wire;
  FieldWriter writer(wire);
  Fields(writer, slice);
  return wire.ByteSizeLong();
}

template void Encode(const LeaderView&, control::Cluster&);
template void Encode(const FromNode&, control::FromNode&);
template void Encode(const LeaderKept&, control::LeaderFile&);
template void Encode(const std::vector<MeasuredLink>&, control::LinksFile&);
template void Encode(const NodeKept&, control::NodeFile&);
template void Encode(const WorkerRoutes&, control::RoutesFile&);
template void Encode(const ToNode&, control::ToNode&);
template void Encode(const KeptWorker&, control::WorkerFile&);
template Expected<LeaderView> Decode(const control::Cluster&);
template Expected<FromNode> Decode(const control::FromNode&);
template Expected<LeaderKept> Decode(const control::LeaderFile&);
template Expected<std::vector<MeasuredLink>> Decode(const control::LinksFile&);
template Expected<NodeKept> Decode(const control::NodeFile&);
template Expected<WorkerRoutes> Decode(const control::RoutesFile&);
template Expected<ToNode> Decode(const control::ToNode&);
template Expected<KeptWorker> Decode(const control::WorkerFile&);

}  // namespace tactus
