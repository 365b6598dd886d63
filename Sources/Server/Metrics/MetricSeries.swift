import Metrics
import Synchronization

/// A counter or a gauge: one number.
final class MetricValue: CounterHandler, FloatingPointCounterHandler, MeterHandler, RecorderHandler, Sendable {
    private let number = Mutex(0.0)

    var value: Double { number.withLock { $0 } }

    func increment(by amount: Int64) { increment(by: Double(amount)) }
    func increment(by amount: Double) { number.withLock { $0 += amount } }
    func decrement(by amount: Double) { number.withLock { $0 -= amount } }
    func set(_ value: Int64) { set(Double(value)) }
    func set(_ value: Double) { number.withLock { $0 = value } }
    func record(_ value: Int64) { set(Double(value)) }
    func record(_ value: Double) { set(value) }
    func reset() { set(0.0) }
}

/// A histogram: the number of values in each bucket, and the sum of all.
final class MetricHistogram: TimerHandler, RecorderHandler, Sendable {
    /// The counts so far. The last bucket has no upper bound.
    struct Counts: Sendable {
        fileprivate(set) var buckets: [UInt64]
        fileprivate(set) var sum = 0.0
    }

    /// The upper bounds of the buckets, in ascending order.
    let bounds: [Double]
    private let state: Mutex<Counts>

    init(bounds: [Double]) {
        self.bounds = bounds
        state = Mutex(Counts(buckets: Array(repeating: 0, count: bounds.count + 1)))
    }

    /// The counts so far.
    var counts: Counts { state.withLock { $0 } }

    func record(_ value: Int64) { record(Double(value)) }
    func recordNanoseconds(_ duration: Int64) { record(Double(duration) / 1_000_000_000) }

    func record(_ value: Double) {
        let bucket = bounds.firstIndex { value <= $0 } ?? bounds.count
        state.withLock { counts in
            counts.buckets[bucket] += 1
            counts.sum += value
        }
    }
}
