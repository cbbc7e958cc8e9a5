# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Ring all-reduce, from the parameter server to 2(n−1)/n
#
# **English.** Every GPU has a gradient of $M$ bytes; every GPU needs the sum of all of them. That is an *all-reduce*. We start with the
# obvious way, see what is wrong with it, derive the ring, and check every claim twice: with the simulator (how long?) and with
# the numpy executor (is the result right?). Every cell asserts what it says.
#
# **한국어.** 모든 GPU가 $M$ 바이트의 그래디언트를 갖고 있고, 모든 GPU가 그 합을 필요로 합니다. 이것이 *올리듀스(all-reduce)* 입니다.
# 당연해 보이는 방법에서 출발해 무엇이 문제인지 보고, 링(ring)을 유도하고, 모든 주장을 두 번 확인합니다. 시뮬레이터(얼마나 걸리나?)와
# numpy 실행기(결과가 맞나?)입니다. 각 셀은 자신의 주장을 `assert`로 확인합니다.

# %%
from dataclasses import replace

import numpy as np

from algorithms.collectives import ALL_REDUCE
from algorithms.registry import find
from kernels.numpy_executor import run
from prediction.predict import predict
from sim.bounds import bounds
from sim.simulate import run_collective
from topologies import Topology, format_time, make
from views import figures
from views.topology_figure import topology_load

n, M, B, L = 8, 64 * 2**20, 25e9, 1e-6  # GPUs, bytes, bytes/s of one direction of a link, seconds a hop


def simulated(topology: Topology, algorithm: str, nbytes: int = M):
    """One all-reduce on a topology."""
    return run_collective(topology, "all-reduce", algorithm, nbytes)


# %% [markdown]
# ## 1. The parameter server / 파라미터 서버
#
# **English.** GPU 0 collects all gradients, adds them up and sends the sum back. Its one link must take in $(n-1)M$ bytes and send as
# many: $2(n-1)M/B$, plus two messages over two hops each, $4L$. Twice the GPUs, twice the time.
#
# **한국어.** GPU 0이 모든 그래디언트를 모아 더한 뒤 돌려보냅니다. 링크 하나로 $(n-1)M$ 바이트를 받고 같은 양을 보내야 하므로
# $2(n-1)M/B$, 여기에 두 홉짜리 메시지 두 번의 $4L$이 더해집니다. GPU가 두 배면 시간도 두 배입니다.

# %%
star = make("star", {"gpus": n, "bandwidth": B, "latency": L})
server = simulated(star, "parameter-server")
assert abs(server.time / (2 * (n - 1) * M / B + 4 * L) - 1) < 1e-12
print("parameter server:", format_time(server.time))
topology_load(server)

# %% [markdown]
# **English.** The picture shows the fault: seven links idle most of the time, one is busy all the time. **If every GPU sends and
# receives equally much, no link waits for another.**
#
# **한국어.** 그림에서 문제가 보입니다. 링크 일곱 개는 대부분 놀고 하나만 계속 바쁩니다. **모든 GPU가 똑같이 보내고 받으면 어느 링크도 다른 링크를
# 기다리지 않습니다.**

# %%
loads = {(load.src, load.dst): load.busy_s / server.time for load in server.link_loads()}
assert loads["switch", "gpu0"] + loads["gpu0", "switch"] > 0.99  # first in, then out
assert max(share for link, share in loads.items() if "gpu0" not in link) < 0.15

# %% [markdown]
# ## 2. The ring / 링
#
# **English.** Cut the vector into $n$ chunks and put the GPUs in a circle. In each step every GPU passes one chunk to the right. In the first
# $n-1$ steps (*reduce-scatter*) the neighbour **adds** what it gets; then every GPU holds one chunk of the full sum. In the next $n-1$
# steps (*all-gather*) the finished chunks go around once more and are **copied**.
#
# **한국어.** 벡터를 $n$개의 청크로 나누고 GPU를 원형으로 놓습니다. 각 단계에서 모든 GPU가 청크 하나를 오른쪽으로 넘깁니다. 처음 $n-1$ 단계
# (*리듀스-스캐터*)에서는 이웃이 받은 것을 **더하고**, 그러면 각 GPU가 전체 합의 청크 하나를 갖습니다. 다음 $n-1$ 단계(*올-게더*)에서는 완성된
# 청크가 한 바퀴 더 돌며 **복사**됩니다.

# %%
schedule = find(ALL_REDUCE, "ring").build(n)
assert schedule.steps == 2 * (n - 1)
figures.step_table(schedule)

# %% [markdown]
# ### Is it right? / 결과가 맞는가?
#
# **English.** Run the same schedule on real arrays. Distinct random integers: no two ranks and no two elements are alike, so that a wrong or
# missing chunk cannot hide.
#
# **한국어.** 같은 일정표를 실제 배열에서 실행합니다. 랭크와 원소마다 서로 다른 난수 정수를 쓰므로 틀리거나 빠진 청크가 숨을 수 없습니다.

# %%
rng = np.random.default_rng(seed=1)
vectors = [rng.integers(1, 2**40, size=1000 + 3) for _ in range(n)]  # 1003 is not a multiple of 8: chunks differ by one element
held, trace = run(schedule, vectors)
for rank in range(n):
    assert np.array_equal(np.concatenate(held[rank]), sum(vectors))

# %% [markdown]
# ## 3. Why 2(n−1)/n / 왜 2(n−1)/n인가
#
# **English.** A chunk is $M/n$ bytes and every GPU sends $2(n-1)$ of them: $2\frac{n-1}{n}M$ bytes, less than $2M$ however many GPUs there are. Less on
# average is not possible without help from switches: each element needs $n-1$ sends to be summed and $n-1$ to be spread. A step takes
# $L + M/(nB)$, so
#
# $$ T = 2(n-1)\left(L + \frac{M}{nB}\right). $$
#
# **한국어.** 청크는 $M/n$ 바이트이고 GPU마다 $2(n-1)$개를 보냅니다. 모두 $2\frac{n-1}{n}M$ 바이트로, GPU가 아무리 많아도 $2M$보다 적습니다.
# 원소마다 더하는 데 $n-1$번, 나누는 데 $n-1$번의 전송이 필요하므로 스위치의 도움 없이 평균적으로 이보다 적게 보낼 수는 없습니다. 한 단계는 $L + M/(nB)$이므로 위의 식이 됩니다.

# %%
ring = make("ring", {"gpus": n, "bandwidth": B, "latency": L})
result = simulated(ring, "ring")
assert abs(result.time / (2 * (n - 1) * (L + M / (n * B))) - 1) < 1e-12
assert (result.bytes_per_rank() == 2 * (n - 1) * M // n).all()
for k in (2, 3, 5, 16, 32):  # any number of GPUs; with chunks of ceil(E/n) elements where n does not divide E
    time = simulated(make("ring", {"gpus": k, "bandwidth": B, "latency": L}), "ring").time
    assert abs(time / (2 * (k - 1) * (L + -(-M // 4 // k) * 4 / B)) - 1) < 1e-12
print(f"ring: {format_time(result.time)}, {server.time / result.time:.1f} times faster than the parameter server")
figures.space_time(schedule, result.trace)

# %% [markdown]
# ## 4. Latency against bandwidth / 지연 시간 대 대역폭
#
# **English.** $2(n-1)$ messages one after the other cost $2(n-1)L$ even if they carry nothing. Recursive doubling needs only $\log_2 n$ exchanges, but
# moves the whole vector in each: $\log_2 n\,(2L + M/B)$ on a switch. So small messages want few steps, large ones few bytes. Where is
# the crossover? Set both times on the star equal ($L_s = 2L$ for two hops):
# $M^* = \dfrac{(2(n-1) - \log_2 n)\,L_s B}{\log_2 n - 2(n-1)/n}$.
#
# **한국어.** 차례로 오가는 $2(n-1)$개의 메시지는 내용이 없어도 $2(n-1)L$이 듭니다. 재귀 배증(recursive doubling)은 $\log_2 n$번만 교환하지만 매번 벡터 전체를
# 보냅니다. 그래서 작은 메시지는 단계가 적은 쪽, 큰 메시지는 바이트가 적은 쪽이 유리합니다. 두 시간이 같아지는 크기가 $M^*$입니다.

# %%
steps = np.log2(n)
crossover = (2 * (n - 1) - steps) * 2 * L * B / (steps - 2 * (n - 1) / n)
for factor, faster in ((0.5, "recursive-doubling"), (2, "ring")):
    size = int(crossover * factor) // (4 * n) * (4 * n)
    times = {name: simulated(star, name, size).time for name in ("ring", "recursive-doubling")}
    assert min(times, key=times.get) == faster
print(f"crossover: {crossover / 1024:.0f} KiB")
sizes = [4**k for k in range(5, 15)]
prediction = predict(star, "all-reduce", sizes, algorithms=["ring", "recursive-doubling", "halving-doubling", "parameter-server"])
floor = {size: bounds(star, ALL_REDUCE, size) for size in sizes}
assert all(c.time_s >= floor[row.size_bytes].lower_bound_s * (1 - 1e-12) for row in prediction.rows for c in row.candidates)
figures.time_vs_size(prediction.rows, floor)

# %% [markdown]
# ## 5. One slow link / 느린 링크 하나
#
# **English.** Halve the bandwidth of one cable of eight (a bad plug is enough). Every chunk has to pass it, in every step some chunk waits for
# it, so the **whole** ring runs at its speed: for large messages twice the time, although 7 of 8 links are fine.
#
# **한국어.** 케이블 여덟 개 중 하나의 대역폭을 절반으로 줄여 봅니다(접촉 불량 하나면 충분합니다). 모든 청크가 그곳을 지나야 하므로 링 **전체**가 그
# 속도로 돕니다. 링크 여덟 개 중 일곱 개가 멀쩡해도 큰 메시지의 시간은 두 배가 됩니다.

# %%
bad = ("gpu3", "gpu4")
links = [replace(link, bandwidth=B / 2) if (link.src, link.dst) == bad else link for link in ring.links]
slow = simulated(Topology.build("ring-8, one slow link", ring.nodes, links), "ring")
assert 1.9 < slow.time / result.time <= 2
assert (slow.link_loads()[0].src, slow.link_loads()[0].dst) == bad
path = slow.critical_path()
assert max(path.bandwidth_by, key=path.bandwidth_by.get) == bad
print(f"healthy {format_time(result.time)}, one link at half speed {format_time(slow.time)}")
topology_load(slow)

# %% [markdown]
# **English.** In the space-time figure the bars of GPU 3 are twice as long, and the wait runs around the ring like a wave.
#
# **한국어.** 시공간 그림에서 GPU 3의 막대가 두 배로 길고, 기다림이 파도처럼 링을 따라 돕니다.

# %%
figures.space_time(schedule, slow.trace)

# %% [markdown]
# ## What to take home / 정리
#
# | | time / 시간 | bytes each GPU sends / GPU당 전송량 |
# |---|---|---|
# | parameter server / 파라미터 서버 | $2(n-1)M/B + 4L$ | server: $(n-1)M$ |
# | ring / 링 | $2(n-1)(L + M/(nB))$ | $2(n-1)M/n$ |
# | recursive doubling / 재귀 배증 | $\log_2 n\,(2L + M/B)$ | $M\log_2 n$ |
#
# **English.** Try next: `ringscope app`, page *Explore*: the same on real machines. **한국어.** 다음으로 `ringscope app`의 *탐색* 페이지에서 실제 장비로 같은 것을 해 보세요.
