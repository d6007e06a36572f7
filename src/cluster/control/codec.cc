#include "cluster/control/codec.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "cluster/models/digest.h"
#include "cluster/models/manifest.h"
#include "control.pb.h"

namespace tactus {
namespace {

template <class... Ts>
struct Cases : Ts... {
  using Ts::operator()...;
};
template <class... Ts>
Cases(Ts...) -> Cases<Ts...>;

constexpr std::size_t kMostName = 256;
constexpr int kMostItems = 100'000;  // of any list
constexpr std::uint32_t kMostIndex = 1 << 20;

// Reads, and keeps the first thing that is wrong.
class Checked {
 public:
  std::string Name(const std::string& text, const char* what) {
    if (text.size() > kMostName || text.find('\0') != std::string::npos) Wrong(what);
    return text;
  }
  Duration Time(std::int64_t ns, const char* what) {
    constexpr std::int64_t kMost = std::int64_t{1} << 53;
    if (ns < 0 || ns > kMost) Wrong(what);
    return Nanos(ns);
  }
  int Index(std::uint32_t value, const char* what) {
    if (value > kMostIndex) Wrong(what);
    return static_cast<int>(value);
  }
  double Number(double value, const char* what) {
    constexpr double kMost = 1e12;
    if (!(value >= 0 && value <= kMost)) Wrong(what);
    return value;
  }
  template <class List>
  const List& Listed(const List& list, const char* what) {
    if (list.size() > kMostItems) Wrong(what);
    return list;
  }
  void Wrong(const char* what) {
    if (wrong_ == nullptr) wrong_ = what;
  }
  template <class T>
  Expected<T> Result(T value) const {
    if (wrong_ == nullptr) return value;
    return InvalidArgument(std::string("invalid ") + wrong_ + " in a message");
  }

 private:
  const char* wrong_ = nullptr;
};

void Put(const PlanId& id, control::PlanId& out) {
  out.set_term(id.term);
  out.set_epoch(id.epoch);
}
PlanId Get(const control::PlanId& in) { return {in.term(), in.epoch()}; }

template <class Refs>
void Put(const std::vector<ModelRef>& refs, Refs* out) {
  for (const ModelRef& each : refs) {
    control::ModelRef& ref = *out->Add();
    ref.set_name(each.name);
    ref.set_digest(each.digest);
  }
}
template <class Refs>
std::vector<ModelRef> RefsIn(const Refs& in, Checked& checked) {
  std::vector<ModelRef> refs;
  for (const control::ModelRef& each : checked.Listed(in, "list of models")) {
    if (!IsPlainName(each.name())) checked.Wrong("model's name");
    if (!Digest::Parse(each.digest())) checked.Wrong("model's digest");
    refs.push_back({each.name(), each.digest()});
  }
  return refs;
}

void Put(const FleetSlice& slice, control::Slice& out) {
  Put(slice.id, *out.mutable_id());
  for (const SliceInstance& each : slice.instances) {
    control::Instance& instance = *out.add_instances();
    instance.set_pipeline(each.pipeline);
    instance.set_stage(each.stage);
    instance.set_model(each.model);
    instance.set_accelerator(static_cast<std::uint32_t>(each.accelerator));
    instance.set_stream(static_cast<std::uint32_t>(each.stream));
    instance.set_batch(static_cast<std::uint32_t>(each.batch));
    instance.set_offset_ns(each.offset.count());
    instance.set_length_ns(each.length.count());
    instance.set_cycle_ns(each.cycle.count());
  }
  for (const SliceRoute& each : slice.routes) {
    control::Route& route = *out.add_routes();
    route.set_pipeline(each.pipeline);
    route.set_stage(each.stage);
    route.set_model(each.model);
    for (const RouteTarget& to : each.to) {
      control::Target& target = *route.add_to();
      target.set_node(to.node);
      target.set_weight(to.weight);
    }
  }
  Put(slice.models, out.mutable_models());
}

template <class Peers>
void Put(const std::vector<PeerPlace>& peers, Peers* out) {
  for (const PeerPlace& each : peers) {
    control::Peer& peer = *out->Add();
    peer.set_node(each.node);
    peer.set_address(each.address);
  }
}
template <class Peers>
std::vector<PeerPlace> PeersIn(const Peers& in, Checked& checked) {
  std::vector<PeerPlace> peers;
  for (const control::Peer& each : checked.Listed(in, "list of peers")) {
    peers.push_back({checked.Name(each.node(), "peer"), checked.Name(each.address(), "peer")});
  }
  return peers;
}

template <class Links>
void Put(const std::vector<MeasuredLink>& links, Links* out) {
  for (const MeasuredLink& each : links) {
    control::Link& link = *out->Add();
    link.set_to(each.to);
    link.set_mbps(each.reading.mbps);
    link.set_rtt_ns(each.reading.rtt.count());
  }
}
template <class Links>
std::vector<MeasuredLink> LinksIn(const Links& in, Checked& checked) {
  std::vector<MeasuredLink> links;
  for (const control::Link& each : checked.Listed(in, "list of links")) {
    links.push_back({checked.Name(each.to(), "link's end"),
                     {checked.Number(each.mbps(), "link's rate"),
                      checked.Time(each.rtt_ns(), "link's round trip")}});
  }
  return links;
}

FleetSlice Get(const control::Slice& in, Checked& checked) {
  FleetSlice slice{.id = Get(in.id()), .instances = {}, .routes = {}};
  for (const control::Instance& each : checked.Listed(in.instances(), "list of instances")) {
    slice.instances.push_back({.pipeline = checked.Name(each.pipeline(), "pipeline"),
                               .stage = checked.Name(each.stage(), "stage"),
                               .model = checked.Name(each.model(), "model"),
                               .accelerator = checked.Index(each.accelerator(), "accelerator"),
                               .stream = checked.Index(each.stream(), "stream"),
                               .batch = checked.Index(each.batch(), "batch"),
                               .offset = checked.Time(each.offset_ns(), "offset"),
                               .length = checked.Time(each.length_ns(), "length"),
                               .cycle = checked.Time(each.cycle_ns(), "cycle")});
  }
  for (const control::Route& each : checked.Listed(in.routes(), "list of routes")) {
    SliceRoute route{checked.Name(each.pipeline(), "pipeline"),
                     checked.Name(each.stage(), "stage"),
                     checked.Name(each.model(), "model"),
                     {}};
    for (const control::Target& to : checked.Listed(each.to(), "list of targets")) {
      route.to.push_back(
          {checked.Name(to.node(), "target"), checked.Number(to.weight(), "weight")});
    }
    slice.routes.push_back(std::move(route));
  }
  slice.models = RefsIn(in.models(), checked);
  return slice;
}

void Put(const NodeReport& report, control::Report& out) {
  out.set_term(report.term);
  Put(report.committed, *out.mutable_committed());
  Put(report.prepared, *out.mutable_prepared());
  Put(report.retired, *out.mutable_retired());
  Put(report.refused, *out.mutable_refused());
  out.set_prepared_ready(report.prepared_ready);
  out.set_committed_ready(report.committed_ready);
  out.set_failing(report.failing);
  out.set_old_in_flight(report.old_in_flight);
  constexpr std::size_t kMostTrouble = 1000;
  // Names of files are in it: not always text that a message may hold.
  std::string trouble = report.trouble.substr(0, kMostTrouble);
  std::ranges::replace_if(
      trouble, [](char c) { return (c & 0x80) != 0; }, '?');
  out.set_trouble(trouble);
  out.set_http(report.http);
  out.set_grpc(report.grpc);
  out.set_peers(report.peers);
  out.set_peer(report.peer);
  out.set_fetched(report.fetched);
}

NodeReport Get(const control::Report& in, Checked& checked) {
  return {.term = in.term(),
          .committed = Get(in.committed()),
          .prepared = Get(in.prepared()),
          .retired = Get(in.retired()),
          .refused = Get(in.refused()),
          .prepared_ready = in.prepared_ready(),
          .committed_ready = in.committed_ready(),
          .failing = in.failing(),
          .old_in_flight = in.old_in_flight(),
          .peers = in.peers(),
          .fetched = in.fetched(),
          .trouble = in.trouble(),
          .http = checked.Name(in.http(), "http"),
          .grpc = checked.Name(in.grpc(), "grpc"),
          .peer = checked.Name(in.peer(), "peer")};
}

template <class Names>
std::vector<std::string> NamesIn(const Names& in, Checked& checked) {
  std::vector<std::string> names;
  for (const std::string& each : checked.Listed(in, "list of models")) {
    names.push_back(checked.Name(each, "model"));
  }
  return names;
}

}  // namespace

std::size_t BytesOf(const FleetSlice& slice) {
  control::Slice wire;
  Put(slice, wire);
  return wire.ByteSizeLong();
}

void Encode(const FromNode& message, control::FromNode& out) {
  out.set_node(message.node);
  out.set_home(message.who.home);
  out.set_count(message.who.count);
  out.set_sequence(message.sequence);
  std::visit(Cases{[&](const NodeHello& hello) {
                     Put(hello.report, *out.mutable_hello()->mutable_report());
                     Put(hello.slice, *out.mutable_hello()->mutable_slice());
                   },
                   [&](const NodeBeat& beat) {
                     Put(beat.report, *out.mutable_beat()->mutable_report());
                     for (const ModelRate& each : beat.rates) {
                       control::Rate& rate = *out.mutable_beat()->add_rates();
                       rate.set_model(each.model);
                       rate.set_rps(each.rate_rps);
                     }
                     Put(beat.links, out.mutable_beat()->mutable_links());
                   }},
             message.what);
}

Expected<FromNode> Decode(const control::FromNode& in) {
  Checked checked;
  FromNode message{checked.Name(in.node(), "node"), {in.home(), in.count()}, in.sequence(), {}};
  if (in.count() == 0) checked.Wrong("count of starts");
  if (in.has_hello()) {
    message.what = NodeHello{Get(in.hello().report(), checked), Get(in.hello().slice(), checked)};
  } else if (in.has_beat()) {
    NodeBeat beat{Get(in.beat().report(), checked), {}};
    for (const control::Rate& each : checked.Listed(in.beat().rates(), "list of rates")) {
      beat.rates.push_back(
          {checked.Name(each.model(), "model"), checked.Number(each.rps(), "rate")});
    }
    beat.links = LinksIn(in.beat().links(), checked);
    message.what = std::move(beat);
  } else {
    checked.Wrong("kind");
  }
  return checked.Result(std::move(message));
}

void Encode(const ToNode& message, control::ToNode& out) {
  out.set_node(message.node);
  out.set_home(message.to.home);
  out.set_count(message.to.count);
  out.set_term(message.term);
  std::visit(Cases{[&](const WelcomeOrder& welcome) {
                     out.mutable_welcome()->set_beat_ns(welcome.beat_every.count());
                   },
                   [&](const GreetOrder&) { out.mutable_greet(); },
                   [&](const DenyOrder& deny) { out.mutable_deny()->set_why(deny.why); },
                   [&](const PrepareOrder& prepare) {
                     Put(prepare.slice, *out.mutable_prepare()->mutable_slice());
                   },
                   [&](const CommitOrder& commit) {
                     Put(commit.id, *out.mutable_commit()->mutable_id());
                     Put(commit.peers, out.mutable_commit()->mutable_peers());
                   },
                   [&](const PeersOrder& order) {
                     Put(order.peers, out.mutable_peers()->mutable_peers());
                   },
                   [&](const RetireOrder& retire) {
                     Put(retire.id, *out.mutable_retire()->mutable_id());
                     for (const auto& each : retire.keep) out.mutable_retire()->add_keep(each);
                   },
                   [&](const AbandonOrder& abandon) {
                     Put(abandon.id, *out.mutable_abandon()->mutable_id());
                     out.mutable_abandon()->set_keep_all(abandon.keep_all);
                     for (const auto& each : abandon.keep) out.mutable_abandon()->add_keep(each);
                   }},
             message.what);
}

Expected<ToNode> Decode(const control::ToNode& in) {
  Checked checked;
  ToNode message{checked.Name(in.node(), "node"), {in.home(), in.count()}, in.term(), {}};
  switch (in.what_case()) {
    case control::ToNode::kWelcome:
      message.what = WelcomeOrder{checked.Time(in.welcome().beat_ns(), "beat")};
      break;
    case control::ToNode::kGreet:
      message.what = GreetOrder{};
      break;
    case control::ToNode::kDeny:
      message.what = DenyOrder{in.deny().why()};
      break;
    case control::ToNode::kPrepare:
      message.what = PrepareOrder{Get(in.prepare().slice(), checked)};
      break;
    case control::ToNode::kCommit:
      message.what = CommitOrder{Get(in.commit().id()), PeersIn(in.commit().peers(), checked)};
      break;
    case control::ToNode::kPeers:
      message.what = PeersOrder{PeersIn(in.peers().peers(), checked)};
      break;
    case control::ToNode::kRetire:
      message.what = RetireOrder{Get(in.retire().id()), NamesIn(in.retire().keep(), checked)};
      break;
    case control::ToNode::kAbandon:
      message.what = AbandonOrder{Get(in.abandon().id()), in.abandon().keep_all(),
                                  NamesIn(in.abandon().keep(), checked)};
      break;
    default:
      checked.Wrong("kind");
  }
  return checked.Result(std::move(message));
}

void Encode(const LeaderView& view, control::Cluster& out) {
  out.set_term(view.term);
  Put(view.serving, *out.mutable_serving());
  Put(view.rolling, *out.mutable_rolling());
  out.set_phase(view.phase);
  out.set_problem(view.problem);
  for (const std::string& each : view.lost) out.add_lost(each);
  for (const LeaderView::Node& each : view.nodes) {
    control::Cluster::Node& node = *out.add_nodes();
    node.set_name(each.name);
    node.set_standing(static_cast<std::uint32_t>(each.standing));
    node.set_silent_ns(each.silent.count());
    Put(each.report, *node.mutable_report());
    Put(each.slice, *node.mutable_slice());
    for (const auto& [model, rps] : each.rates) {
      control::Rate& rate = *node.add_rates();
      rate.set_model(model);
      rate.set_rps(rps);
    }
    node.set_left_out(each.left_out);
    Put(each.links, node.mutable_links());
  }
}

Expected<LeaderView> Decode(const control::Cluster& in) {
  Checked checked;
  LeaderView view{.term = in.term(),
                  .serving = Get(in.serving()),
                  .rolling = Get(in.rolling()),
                  .phase = in.phase(),
                  .problem = in.problem(),
                  .lost = NamesIn(in.lost(), checked),
                  .nodes = {}};
  for (const control::Cluster::Node& each : in.nodes()) {
    LeaderView::Node node{.name = each.name(), .silent = Nanos(each.silent_ns())};
    if (each.standing() > static_cast<std::uint32_t>(Standing::kDead)) checked.Wrong("standing");
    node.standing = static_cast<Standing>(each.standing());
    node.report = Get(each.report(), checked);
    node.slice = Get(each.slice(), checked);
    for (const control::Rate& rate : each.rates()) node.rates[rate.model()] = rate.rps();
    node.left_out = each.left_out();
    node.links = LinksIn(each.links(), checked);
    view.nodes.push_back(std::move(node));
  }
  return checked.Result(std::move(view));
}

void Encode(const NodeKept& kept, control::NodeFile& out) {
  out.set_home(kept.who.home);
  out.set_count(kept.who.count);
  out.set_term(kept.term);
  Put(kept.slice, *out.mutable_slice());
  for (const std::string& each : kept.held) out.add_held(each);
  Put(kept.peers, out.mutable_peers());
  Put(kept.loaded, out.mutable_loaded());
}

Expected<NodeKept> Decode(const control::NodeFile& in) {
  Checked checked;
  NodeKept kept{.who = {in.home(), in.count()},
                .term = in.term(),
                .slice = Get(in.slice(), checked),
                .held = NamesIn(in.held(), checked),
                .peers = PeersIn(in.peers(), checked),
                .loaded = RefsIn(in.loaded(), checked)};
  return checked.Result(std::move(kept));
}

void Encode(const WorkerRoutes& routes, control::RoutesFile& out) {
  Put(routes.plan, *out.mutable_plan());
  for (const WorkerRoute& each : routes.routes) {
    control::RoutesFile::Route& route = *out.add_routes();
    route.set_pipeline(each.pipeline);
    route.set_stage(each.stage);
    route.set_model(each.model);
    for (const WorkerTarget& to : each.to) {
      control::RoutesFile::Target& target = *route.add_to();
      target.set_node(to.node);
      target.set_address(to.address);
      target.set_weight(to.weight);
      target.set_here(to.here);
    }
  }
}

Expected<WorkerRoutes> Decode(const control::RoutesFile& in) {
  Checked checked;
  WorkerRoutes routes{.plan = Get(in.plan()), .routes = {}};
  for (const control::RoutesFile::Route& each : checked.Listed(in.routes(), "list of routes")) {
    WorkerRoute route{checked.Name(each.pipeline(), "pipeline"),
                      checked.Name(each.stage(), "stage"),
                      checked.Name(each.model(), "model"),
                      {}};
    for (const auto& to : checked.Listed(each.to(), "list of targets")) {
      route.to.push_back({checked.Name(to.node(), "target"), checked.Name(to.address(), "address"),
                          checked.Number(to.weight(), "weight"), to.here()});
    }
    routes.routes.push_back(std::move(route));
  }
  return checked.Result(std::move(routes));
}

void Encode(const std::vector<MeasuredLink>& links, control::LinksFile& out) {
  Put(links, out.mutable_links());
}

Expected<std::vector<MeasuredLink>> Decode(const control::LinksFile& in) {
  Checked checked;
  return checked.Result(LinksIn(in.links(), checked));
}

void Encode(const LeaderKept& kept, control::LeaderFile& out) {
  out.set_term(kept.term);
  out.set_epoch(kept.epoch);
}

LeaderKept Decode(const control::LeaderFile& in) { return {in.term(), in.epoch()}; }

}  // namespace tactus
