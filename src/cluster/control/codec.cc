#include "cluster/control/codec.h"

#include <algorithm>
#include <string>

#include "cluster/control/message_fields.h"
#include "cluster/models/digest.h"
#include "cluster/models/manifest.h"
#include "control.pb.h"

namespace tactus {

template <class Io>
void Fields(Io& io, Of<Io, PlanId> id) {
  io(id.term, id.epoch);
}
template <class Io>
void Fields(Io& io, Of<Io, ModelRef> ref) {
  io(ref.name, ref.digest);
  io.Check(IsPlainName(ref.name), "name");
  io.Check(Digest::Parse(ref.digest).has_value(), "digest");
}
template <class Io>
void Fields(Io& io, Of<Io, SliceInstance> instance) {
  io(instance.pipeline, instance.stage, instance.model, instance.accelerator, instance.stream,
     instance.batch, instance.offset, instance.length, instance.cycle);
}
template <class Io>
void Fields(Io& io, Of<Io, RouteTarget> target) {
  io(target.node, target.weight);
}
template <class Io>
void Fields(Io& io, Of<Io, SliceRoute> route) {
  io(route.pipeline, route.stage, route.model, route.to);
}
template <class Io>
void Fields(Io& io, Of<Io, FleetSlice> slice) {
  io(slice.id, slice.instances, slice.routes, slice.models);
}
template <class Io>
void Fields(Io& io, Of<Io, PeerPlace> peer) {
  io(peer.node, peer.address);
}
template <class Io>
void Fields(Io& io, Of<Io, ModelRate> rate) {
  io(rate.model, rate.rate_rps);
}
template <class Io>
void Fields(Io& io, Of<Io, MeasuredLink> link) {
  io(link.to, link.reading.mbps, link.reading.rtt);
}
template <class Io>
void Fields(Io& io, Of<Io, NodeReport> report) {
  std::string trouble = report.trouble;
  if constexpr (!Io::kReads) {
    constexpr std::size_t kMostTrouble = 1000;
    // Names of files are in it: not always text that a message may hold.
    trouble.resize(std::min(trouble.size(), kMostTrouble));
    std::ranges::replace_if(
        trouble, [](char c) { return (c & 0x80) != 0; }, '?');
  }
  io(report.term, report.committed, report.prepared, report.retired, report.refused,
     report.prepared_ready, report.committed_ready, report.failing, report.old_in_flight,
     Any(trouble), report.http, report.grpc, report.peers, report.peer, report.fetched);
  if constexpr (Io::kReads) report.trouble = std::move(trouble);
}
template <class Io>
void Fields(Io& io, Of<Io, NodeHello> hello) {
  io(hello.report, hello.slice);
}
template <class Io>
void Fields(Io& io, Of<Io, NodeBeat> beat) {
  io(beat.report, beat.rates, beat.links);
}
template <class Io>
void Fields(Io& io, Of<Io, FromNode> message) {
  io(message.node, message.who.home, message.who.count, message.sequence);
  io.Check(message.who.count != 0, "count");
  io.OneOf(message.what);
}
template <class Io>
void Fields(Io& io, Of<Io, WelcomeOrder> welcome) {
  io(welcome.beat_every);
}
template <class Io>
void Fields(Io&, Of<Io, GreetOrder>) {}
template <class Io>
void Fields(Io& io, Of<Io, DenyOrder> deny) {
  io(Any(deny.why));
}
template <class Io>
void Fields(Io& io, Of<Io, PrepareOrder> prepare) {
  io(prepare.slice);
}
template <class Io>
void Fields(Io& io, Of<Io, CommitOrder> commit) {
  io(commit.id, commit.peers);
}
template <class Io>
void Fields(Io& io, Of<Io, RetireOrder> retire) {
  io(retire.id, retire.keep);
}
template <class Io>
void Fields(Io& io, Of<Io, AbandonOrder> abandon) {
  io(abandon.id, abandon.keep_all, abandon.keep);
}
template <class Io>
void Fields(Io& io, Of<Io, PeersOrder> order) {
  io(order.peers);
}
template <class Io>
void Fields(Io& io, Of<Io, ToNode> message) {
  io(message.node, message.to.home, message.to.count, message.term);
  io.OneOf(message.what);
}
template <class Io>
void Fields(Io& io, Of<Io, LeaderView::Node> node) {
  std::vector<ModelRate> rates;
  if constexpr (!Io::kReads) {
    for (const auto& [model, rps] : node.rates) rates.push_back({model, rps});
  }
  io(Any(node.name), node.standing, Any(node.silent), node.report, node.slice, rates,
     Any(node.left_out), node.links);
  io.Check(node.standing <= Standing::kDead, "standing");
  if constexpr (Io::kReads) {
    for (ModelRate& each : rates) node.rates[std::move(each.model)] = each.rate_rps;
  }
}
template <class Io>
void Fields(Io& io, Of<Io, LeaderView> view) {
  io(view.term, view.serving, view.rolling, Any(view.phase), Any(view.problem), view.lost,
     view.nodes);
}
template <class Io>
void Fields(Io& io, Of<Io, NodeKept> kept) {
  io(kept.who.home, kept.who.count, kept.term, kept.slice, kept.held, kept.peers, kept.loaded);
  io.Check(kept.who.home != 0, "home");
}
template <class Io>
void Fields(Io& io, Of<Io, LeaderKept> kept) {
  io(kept.term, kept.epoch);
}
template <class Io>
void Fields(Io& io, Of<Io, KeptWorker> kept) {
  io(kept.process.pid, kept.process.started, kept.http, kept.grpc, kept.metrics, kept.peer,
     Any(kept.models));
  io.Check(kept.process.pid > 1, "pid");
}
template <class Io>
void Fields(Io& io, Of<Io, WorkerTarget> target) {
  io(target.node, target.address, target.weight, target.here);
}
template <class Io>
void Fields(Io& io, Of<Io, WorkerRoute> route) {
  io(route.pipeline, route.stage, route.model, route.to);
}
template <class Io>
void Fields(Io& io, Of<Io, WorkerRoutes> routes) {
  io(routes.plan, routes.routes);
}
template <class Io>
void Fields(Io& io, Of<Io, std::vector<MeasuredLink>> links) {
  io(links);
}

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
