import Synchronization
import Testing

@testable import Tracking

@Suite("No more calls are under way than there are connections")
struct CallGateTests {
    private struct Count {
        var now = 0
        var most = 0
        var all = 0
    }

    private final class Counter: Sendable {
        let count = Mutex(Count())

        func begin() {
            count.withLock { count in
                count.now += 1
                count.all += 1
                count.most = max(count.most, count.now)
            }
        }

        func end() { count.withLock { $0.now -= 1 } }
    }

    @Test("Every caller gets a turn, and never more than the limit at a time", .timeLimit(.minutes(1)))
    func limit() async {
        let gate = CallGate(callsMax: 3)
        let counter = Counter()
        await withDiscardingTaskGroup { group in
            for _ in 0..<200 {
                group.addTask {
                    await gate.enter()
                    counter.begin()
                    await Task.yield()
                    counter.end()
                    gate.leave()
                }
            }
        }
        let seen = counter.count.withLock { $0 }
        #expect(seen.all == 200 && seen.now == 0)
        #expect(seen.most <= 3)
    }
}
