// The bench dumbbell written for ns-3: the peer that `make bench` measures against.
//
//   left host i --10 Gbit/s, 1 ms-- router --rate, 23 ms-- router --10 Gbit/s, 1 ms-- right host i
//
// N bulk flows, each with its own pair of hosts; base RTT 50 ms; drop-tail queues of one BDP (rate x 50 ms)
// in packets of 1500 bytes; CUBIC, SACK, delayed ACKs, initial window 10. It prints one line of JSON.
// Where ns-3 leaves a choice, the faster one is taken; benches/ns3/README.md lists them.

#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

using namespace ns3;

namespace
{

// Without timestamps a data packet is 20 bytes of IP, 20 of TCP and the payload: 1500 on the wire.
constexpr uint32_t PACKET_BYTES = 1500;
constexpr uint32_t MSS = PACKET_BYTES - 40;
// ns-3 puts a PPP header on each frame. Links run faster by that much, so that a data packet takes 1500 x 8 / rate.
constexpr uint32_t PPP_BYTES = 2;
constexpr double BASE_RTT = 0.050;
constexpr double ACCESS_RATE = 10e9;
constexpr uint16_t PORT = 5000;
const Time SAMPLE_INTERVAL = MilliSeconds(100);
// The network of left link i is LEFT + 4 i / 30, of right link i RIGHT + 4 i / 30. Hosts have .1, routers .2.
constexpr uint32_t LEFT = 10U << 24;
constexpr uint32_t RIGHT = 11U << 24;
constexpr uint32_t MIDDLE = 12U << 24;
constexpr uint32_t MAX_FLOWS = (1U << 24) / 4;
const Ipv4Mask LINK_MASK("255.255.255.252");

uint64_t g_packetHops = 0;
uint64_t g_deliveredBytes = 0;
uint64_t g_bufferBytes = 0;

void
CountHop(Ptr<const Packet>)
{
    ++g_packetHops;
}

uint32_t
BdpPackets(double rate)
{
    return std::max(1U, static_cast<uint32_t>(std::lround(rate * BASE_RTT / 8 / PACKET_BYTES)));
}

DataRate
LinkRate(double rate)
{
    return DataRate(std::llround(rate * (PACKET_BYTES + PPP_BYTES) / PACKET_BYTES));
}

// One sender. It keeps some windows of data in the socket, enough never to be the limit: a full buffer of packets would
// cost ns-3 memory.
class Flow
{
  public:
    Flow(Ptr<Node> source, Address sink, Time start)
        : m_socket(Socket::CreateSocket(source, TcpSocketFactory::GetTypeId())),
          m_sink(sink)
    {
        m_socket->TraceConnectWithoutContext("CongestionWindow", MakeCallback(&Flow::OnWindow, this));
        m_socket->SetSendCallback(MakeCallback(&Flow::OnSend, this));
        Simulator::ScheduleWithContext(source->GetId(), start, &Flow::Connect, this);
    }

    uint32_t Cwnd() const
    {
        return m_cwnd;
    }

  private:
    void Connect()
    {
        m_socket->Bind();
        m_socket->Connect(m_sink);
    }

    void OnWindow(uint32_t, uint32_t cwnd)
    {
        m_cwnd = cwnd;
    }

    void OnSend(Ptr<Socket> socket, uint32_t available)
    {
        uint64_t buffered = g_bufferBytes - available;
        const uint64_t window = std::max(m_cwnd, 10 * MSS);
        if (buffered > 5 * window)
        {
            return;
        }
        for (const uint64_t wanted = std::min(6 * window, g_bufferBytes - MSS); buffered < wanted; buffered += MSS)
        {
            socket->Send(Create<Packet>(MSS));
        }
    }

    Ptr<Socket> m_socket;
    Address m_sink;
    uint32_t m_cwnd = 0;
};

void
OnReceive(Ptr<Socket> socket)
{
    while (Ptr<Packet> packet = socket->Recv())
    {
        if (packet->GetSize() == 0)
        {
            break;
        }
        g_deliveredBytes += packet->GetSize();
    }
}

void
OnAccept(Ptr<Socket> socket, const Address&)
{
    socket->SetRecvCallback(MakeCallback(&OnReceive));
}

void
Listen(Ptr<Node> node)
{
    Ptr<Socket> socket = Socket::CreateSocket(node, TcpSocketFactory::GetTypeId());
    socket->Bind(InetSocketAddress(Ipv4Address::GetAny(), PORT));
    socket->Listen();
    socket->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address&>(), MakeCallback(&OnAccept));
}

// Samples stay in memory, as the table of the other simulator does.
struct Sampler
{
    const std::vector<Flow>& flows;
    std::vector<uint32_t> cwnds;

    void Sample()
    {
        for (const Flow& flow : flows)
        {
            cwnds.push_back(flow.Cwnd());
        }
        Simulator::Schedule(SAMPLE_INTERVAL, &Sampler::Sample, this);
    }
};

// Routes of a router by arithmetic: the list that Ipv4StaticRouting walks for each packet has one entry per flow.
class DumbbellRouting : public Ipv4RoutingProtocol
{
  public:
    explicit DumbbellRouting(uint32_t side)
        : m_side(side)
    {
    }

    // Interfaces are added in order: the bottleneck first, then one for each host of this side.
    void AddInterface(Ptr<NetDevice> device, Ipv4Address neighbour)
    {
        Ptr<Ipv4Route> route = Create<Ipv4Route>();
        route->SetGateway(neighbour);
        route->SetOutputDevice(device);
        m_routes.push_back(route);
    }

    Ptr<Ipv4Route> RouteOutput(Ptr<Packet>, const Ipv4Header&, Ptr<NetDevice>, Socket::SocketErrno& error) override
    {
        error = Socket::ERROR_NOROUTETOHOST; // Routers say nothing of their own.
        return nullptr;
    }

    bool RouteInput(Ptr<const Packet> packet,
                    const Ipv4Header& header,
                    Ptr<const NetDevice>,
                    UnicastForwardCallback forward,
                    MulticastForwardCallback,
                    LocalDeliverCallback,
                    ErrorCallback) override
    {
        const uint32_t offset = header.GetDestination().Get() - m_side;
        forward(m_routes[offset < 4 * MAX_FLOWS ? 1 + offset / 4 : 0], packet, header);
        return true;
    }

    void NotifyInterfaceUp(uint32_t) override
    {
    }

    void NotifyInterfaceDown(uint32_t) override
    {
    }

    void NotifyAddAddress(uint32_t, Ipv4InterfaceAddress) override
    {
    }

    void NotifyRemoveAddress(uint32_t, Ipv4InterfaceAddress) override
    {
    }

    void SetIpv4(Ptr<Ipv4>) override
    {
    }

    void PrintRoutingTable(Ptr<OutputStreamWrapper>, Time::Unit) const override
    {
    }

  private:
    uint32_t m_side;
    std::vector<Ptr<Ipv4Route>> m_routes;
};

// By hand, since Ipv4AddressHelper would put an FqCoDel above every device.
uint32_t
AddAddress(Ptr<NetDevice> device, uint32_t address)
{
    Ptr<Ipv4> ipv4 = device->GetNode()->GetObject<Ipv4>();
    const uint32_t interface = ipv4->AddInterface(device);
    ipv4->AddAddress(interface, Ipv4InterfaceAddress(Ipv4Address(address), LINK_MASK));
    ipv4->SetUp(interface);
    return interface;
}

// Packets go straight to IP. The lists that a node and its traffic control layer walk for each packet have an entry per
// device, which on a router is one per flow.
void
AddRouterAddress(Ptr<NetDevice> device, uint32_t address, uint32_t neighbour)
{
    AddAddress(device, address);
    Ptr<Ipv4L3Protocol> ip = device->GetNode()->GetObject<Ipv4L3Protocol>();
    device->SetReceiveCallback(
        [ip](Ptr<NetDevice> from, Ptr<const Packet> packet, uint16_t protocol, const Address& sender) {
            ip->Receive(from, packet, protocol, sender, from->GetAddress(), NetDevice::PACKET_HOST);
            return true;
        });
    DynamicCast<DumbbellRouting>(ip->GetRoutingProtocol())->AddInterface(device, Ipv4Address(neighbour));
}

class Dumbbell
{
  public:
    Dumbbell(uint32_t flows, double rate)
    {
        m_stack.SetIpv6StackInstall(false);
        m_stack.SetRoutingHelper(Ipv4StaticRoutingHelper());
        Ptr<Node> routers[] = {MakeRouter(LEFT), MakeRouter(RIGHT)};
        NetDeviceContainer bottleneck = Connect(routers[0], routers[1], rate, MilliSeconds(23));
        AddRouterAddress(bottleneck.Get(0), MIDDLE + 1, MIDDLE + 2);
        AddRouterAddress(bottleneck.Get(1), MIDDLE + 2, MIDDLE + 1);
        for (uint32_t i = 0; i < flows; ++i)
        {
            left.push_back(MakeHost(routers[0], LEFT + 4 * i));
            right.push_back(MakeHost(routers[1], RIGHT + 4 * i));
        }
    }

    uint64_t Drops() const
    {
        uint64_t drops = 0;
        for (const Ptr<Queue<Packet>>& queue : m_queues)
        {
            drops += queue->GetTotalDroppedPackets();
        }
        return drops;
    }

    std::vector<Ptr<Node>> left;
    std::vector<Ptr<Node>> right;

  private:
    NetDeviceContainer Connect(Ptr<Node> a, Ptr<Node> b, double rate, Time delay)
    {
        PointToPointHelper link;
        link.SetDeviceAttribute("DataRate", DataRateValue(LinkRate(rate)));
        link.SetChannelAttribute("Delay", TimeValue(delay));
        const QueueSize size(QueueSizeUnit::PACKETS, BdpPackets(rate));
        link.SetQueue("ns3::DropTailQueue", "MaxSize", QueueSizeValue(size));
        link.DisableFlowControl(); // With it, the layer above the device would drop the packets, uncounted.
        NetDeviceContainer devices = link.Install(a, b);
        for (uint32_t i = 0; i < 2; ++i)
        {
            Ptr<PointToPointNetDevice> device = DynamicCast<PointToPointNetDevice>(devices.Get(i));
            device->TraceConnectWithoutContext("PhyRxEnd", MakeCallback(&CountHop));
            m_queues.push_back(device->GetQueue());
        }
        return devices;
    }

    Ptr<Node> MakeRouter(uint32_t side)
    {
        Ptr<Node> router = CreateObject<Node>();
        m_stack.Install(router);
        router->GetObject<Ipv4>()->SetRoutingProtocol(Create<DumbbellRouting>(side));
        return router;
    }

    Ptr<Node> MakeHost(Ptr<Node> router, uint32_t network)
    {
        Ptr<Node> host = CreateObject<Node>();
        m_stack.Install(host);
        NetDeviceContainer devices = Connect(host, router, ACCESS_RATE, MilliSeconds(1));
        const uint32_t interface = AddAddress(devices.Get(0), network + 1);
        AddRouterAddress(devices.Get(1), network + 2, network + 1);
        Ipv4StaticRoutingHelper()
            .GetStaticRouting(host->GetObject<Ipv4>())
            ->SetDefaultRoute(Ipv4Address(network + 2), interface);
        return host;
    }

    InternetStackHelper m_stack;
    std::vector<Ptr<Queue<Packet>>> m_queues;
};

void
SetDefaults(double rate)
{
    // Never the limit: a window can reach two BDP, and in repair a few more of sequence space.
    g_bufferBytes = std::clamp<uint64_t>(16ULL * BdpPackets(rate) * PACKET_BYTES, 1 << 20, 1 << 30);
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpCubic::GetTypeId()));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(MSS));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(g_bufferBytes));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(g_bufferBytes));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));
}

double
Run(double seconds)
{
    Simulator::Stop(Seconds(seconds));
    const auto start = std::chrono::steady_clock::now();
    Simulator::Run();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

uint64_t
PeakMemory()
{
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

} // namespace

int
main(int argc, char* argv[])
{
    uint32_t flows = 1;
    std::string rateText = "100Mbps";
    double seconds = 10;
    CommandLine command("N CUBIC flows over a dumbbell; prints one line of JSON.");
    command.AddValue("flows", "number of flows", flows);
    command.AddValue("rate", "rate of the bottleneck", rateText);
    command.AddValue("seconds", "simulated time", seconds);
    command.Parse(argc, argv);
    if (flows == 0 || flows > MAX_FLOWS || !(seconds > 0))
    {
        std::cerr << "error: --flows must be in 1.." << MAX_FLOWS << " and --seconds above 0\n";
        return 2;
    }
    const double rate = static_cast<double>(DataRate(rateText).GetBitRate());

    SetDefaults(rate);
    Simulator::SetScheduler(ObjectFactory("ns3::PriorityQueueScheduler"));
    Dumbbell dumbbell(flows, rate);
    std::vector<Flow> senders;
    senders.reserve(flows); // The sockets hold pointers to them.
    for (uint32_t i = 0; i < flows; ++i)
    {
        Listen(dumbbell.right[i]);
        const Address sink = InetSocketAddress(Ipv4Address(RIGHT + 4 * i + 1), PORT);
        senders.emplace_back(dumbbell.left[i], sink, Seconds(static_cast<double>(i) / flows));
    }
    Sampler sampler{senders, {}};
    sampler.Sample();

    const double wall = Run(seconds);
    std::printf("{\"flows\":%u,\"packet_hops\":%llu,\"wall_seconds\":%.6f,\"packet_hops_per_second\":%.0f,"
                "\"peak_memory_bytes\":%llu,\"goodput_mbit_s\":%.3f,\"drops\":%llu}\n",
                flows,
                static_cast<unsigned long long>(g_packetHops),
                wall,
                static_cast<double>(g_packetHops) / wall,
                static_cast<unsigned long long>(PeakMemory()),
                static_cast<double>(g_deliveredBytes) * 8 / seconds / 1e6,
                static_cast<unsigned long long>(dumbbell.Drops()));
    Simulator::Destroy();
    return 0;
}
