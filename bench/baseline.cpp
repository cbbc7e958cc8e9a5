// What an event loop costs at least: a ring all-reduce over a star in C++, one event after the other from a binary heap, flat arrays, the
// schedule built in, and no contention (each cable carries one flow at a time). Prints {"time": simulated seconds, "sends": count, "cpu_s": processor seconds}.
// Usage: baseline RANKS BYTES BANDWIDTH[B/s] LATENCY[s of a route] [ELEMENT BYTES]
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <queue>
#include <vector>

struct Event {
    double time;
    int64_t rank;
    bool arrival;  // else: the last byte has left
    bool operator<(const Event& other) const {  // the top of the heap is the earliest; departures before arrivals, then by rank
        if (time != other.time) return time > other.time;
        if (arrival != other.arrival) return arrival;
        return rank > other.rank;
    }
};

int main(int argc, char** argv) {
    if (argc < 5) {
        std::fprintf(stderr, "usage: baseline RANKS BYTES BANDWIDTH LATENCY [ELEMENT BYTES]\n");
        return 2;
    }
    const int64_t n = std::atoll(argv[1]), size = argc > 5 ? std::atoll(argv[5]) : 4, elements = std::atoll(argv[2]) / size;
    const double bandwidth = std::atof(argv[3]), latency = std::atof(argv[4]);
    const std::clock_t began = std::clock();
    const int64_t steps = 2 * (n - 1);
    std::vector<double> seconds(n);  // of each chunk on a cable
    for (int64_t c = 0; c < n; ++c) seconds[c] = double(((c + 1) * elements / n - c * elements / n) * size) / bandwidth;

    std::vector<int64_t> sent(n, 0), received(n, 0);  // messages of a rank that have left it, that have come to it
    std::vector<char> sending(n, 0);
    std::priority_queue<Event> heap;
    double now = 0;
    int64_t sends = 0;
    auto go_on = [&](int64_t rank) {  // message s leaves after message s-1 has left, and after s messages have come
        const int64_t s = sent[rank];
        if (sending[rank] || s == steps || received[rank] < s) return;
        sending[rank] = 1;
        const int64_t back = s < n - 1 ? s + 1 : s - (n - 1);  // reduce-scatter starts with the chunk of the left, all-gather with its own
        heap.push({now + seconds[(rank - back + 2 * n) % n], rank, false});
    };
    for (int64_t rank = 0; rank < n; ++rank) go_on(rank);
    double end = 0;
    while (!heap.empty()) {
        const Event event = heap.top();
        heap.pop();
        now = event.time;
        if (event.arrival) {
            end = now;
            ++received[event.rank];
        } else {
            ++sends;
            ++sent[event.rank];
            sending[event.rank] = 0;
            heap.push({now + latency, (event.rank + 1) % n, true});
        }
        go_on(event.rank);
    }
    const double cpu = double(std::clock() - began) / CLOCKS_PER_SEC;
    std::printf("{\"time\": %.17g, \"sends\": %lld, \"cpu_s\": %.6f}\n", end, static_cast<long long>(sends), cpu);
}
