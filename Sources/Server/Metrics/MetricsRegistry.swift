package import Metrics
import Subscriptions
import Synchronization
import Tracking

/// The registry of this process's metrics, for `/metrics`.
///
/// It is a factory of swift-metrics, so that a program that embeds the product may pass it to `MetricsSystem.bootstrap`.
/// A metric has at most `seriesMax` series. More are counted as dropped, so that a caller cannot fill the memory.
package final class MetricsRegistry: MetricsFactory {
    /// The most series of one metric: enough for six lanes of a few hundred apps.
    static let seriesMax = 5_000

    struct Label: Sendable, Hashable, Comparable {
        let name, value: String

        static func < (left: Label, right: Label) -> Bool { (left.name, left.value) < (right.name, right.value) }
    }

    enum Series: Sendable {
        case value(MetricValue)
        case histogram(MetricHistogram)
    }

    struct Family: Sendable {
        let name, help: String
        let kind: Metric.Kind
        var series: [[Label]: Series] = [:]
    }

    private let families: Mutex<[String: Family]>

    /// Creates a registry that knows our own metrics.
    /// - Parameter version: The version of the program, for `perennial_build_info`; nil shows none.
    package init(version: String? = nil) {
        let own = Metric.allCases.map { ($0.rawValue, Family(name: $0.rawValue, help: $0.help, kind: $0.kind)) }
        families = Mutex(Dictionary(own) { first, _ in first })
        if let version { gauge(.build, [("version", version)]).set(1) }
    }

    /// Every metric that has series, by name.
    var contents: [Family] {
        families.withLock { $0.values.filter { !$0.series.isEmpty } }.sorted { $0.name < $1.name }
    }

    /// Removes all series of a metric, because its values may no longer be true.
    func clear(_ metric: Metric) { families.withLock { $0[metric.rawValue]?.series = [:] } }

    private func series(_ name: String, _ labels: [(String, String)], kind: Metric.Kind) -> Series? {
        let key = labels.map { Label(name: MetricName.label($0.0), value: $0.1) }.sorted()
        return families.withLock { families in
            let name = MetricName.metric(name)
            var family = families[name] ?? Family(name: name, help: "", kind: kind)
            // A name has one kind. A series of another kind is not counted.
            guard family.kind.word == kind.word else { return nil }
            if let known = family.series[key] { return known }
            guard family.series.count < Self.seriesMax else {
                Self.countDropped(in: &families)
                return nil
            }
            let new: Series =
                switch family.kind {
                case .counter, .gauge: .value(MetricValue())
                case .histogram(let bounds): .histogram(MetricHistogram(bounds: bounds))
                }
            family.series[key] = new
            families[name] = family
            return new
        }
    }

    private static func countDropped(in families: inout [String: Family]) {
        let name = Metric.seriesDropped.rawValue
        let counter = families[name]?.series[[]] ?? .value(MetricValue())
        if case .value(let dropped) = counter { dropped.increment(by: Int64(1)) }
        families[name]?.series[[]] = counter
    }

    private func value(_ name: String, _ labels: [(String, String)], _ kind: Metric.Kind) -> MetricValue {
        guard case .value(let value) = series(name, labels, kind: kind) else { return MetricValue() }
        return value
    }

    private func histogram(_ name: String, _ labels: [(String, String)]) -> MetricHistogram {
        let kind = Metric.Kind.histogram([0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10])
        guard case .histogram(let histogram) = series(name, labels, kind: kind) else {
            return MetricHistogram(bounds: [])
        }
        return histogram
    }
}

/// The requirements of swift-metrics for a factory. The label of swift-metrics is the name of a metric here. A series
/// lives as long as the process, and nothing is destroyed: a counter that disappeared would look like a restart.
extension MetricsRegistry {
    package func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        value(label, dimensions, .counter)
    }

    /// Returns a counter of fractions.
    package func makeFloatingPointCounter(
        label: String, dimensions: [(String, String)]
    ) -> any FloatingPointCounterHandler {
        value(label, dimensions, .counter)
    }

    /// Returns a gauge.
    package func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
        value(label, dimensions, .gauge)
    }

    /// Returns a histogram, or a gauge when `aggregate` is false.
    package func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
        if aggregate { histogram(label, dimensions) } else { value(label, dimensions, .gauge) }
    }

    /// Returns a histogram of seconds.
    package func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        histogram(label, dimensions)
    }

    package func destroyCounter(_ handler: any CounterHandler) {}
    package func destroyFloatingPointCounter(_ handler: any FloatingPointCounterHandler) {}
    package func destroyMeter(_ handler: any MeterHandler) {}
    package func destroyRecorder(_ handler: any RecorderHandler) {}
    package func destroyTimer(_ handler: any TimerHandler) {}
}

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

/// The Prometheus text format, version 0.0.4:
/// https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format
enum MetricsText {
    static let contentType = "text/plain; version=0.0.4; charset=utf-8"

    static func text(of families: [MetricsRegistry.Family]) -> String {
        var text = ""
        for family in families {
            text += "# HELP \(family.name) \(escaped(family.help, quotes: false))\n"
            text += "# TYPE \(family.name) \(family.kind.word)\n"
            for (labels, series) in family.series.sorted(by: { $0.key.lexicographicallyPrecedes($1.key) }) {
                switch series {
                case .value(let value): text += line(family.name, labels, value.value)
                case .histogram(let histogram): text += lines(family.name, labels, histogram)
                }
            }
        }
        return text
    }

    /// Returns the lines of a histogram. Buckets are cumulative, and the last one counts every value.
    private static func lines(
        _ name: String, _ labels: [MetricsRegistry.Label], _ histogram: MetricHistogram
    ) -> String {
        let counts = histogram.counts
        var (text, total) = ("", UInt64(0))
        for (bucket, count) in counts.buckets.enumerated() {
            total += count
            let bound = bucket < histogram.bounds.count ? number(histogram.bounds[bucket]) : "+Inf"
            text += line(name + "_bucket", labels + [.init(name: "le", value: bound)], Double(total))
        }
        return text + line(name + "_sum", labels, counts.sum) + line(name + "_count", labels, Double(total))
    }

    private static func line(_ name: String, _ labels: [MetricsRegistry.Label], _ value: Double) -> String {
        let inner = labels.map { "\($0.name)=\"\(escaped($0.value, quotes: true))\"" }.joined(separator: ",")
        return "\(name)\(inner.isEmpty ? "" : "{\(inner)}") \(number(value))\n"
    }

    private static func number(_ value: Double) -> String {
        if value.isNaN { return "NaN" }
        if value.isInfinite { return value < 0 ? "-Inf" : "+Inf" }
        return Int64(exactly: value).map(String.init) ?? "\(value)"
    }

    private static func escaped(_ text: String, quotes: Bool) -> String {
        let lines = text.replacing("\\", with: "\\\\").replacing("\n", with: "\\n")
        return quotes ? lines.replacing("\"", with: "\\\"") : lines
    }
}

/// Names in the form that the format allows. Every other character becomes `_`.
enum MetricName {
    /// Returns a metric's name: letters, digits, `_` and `:`.
    static func metric(_ text: String) -> String { cleaned(text, also: [UInt8(ascii: ":")]) }

    /// Returns a label's name: letters, digits and `_`.
    static func label(_ text: String) -> String { cleaned(text, also: []) }

    private static func cleaned(_ text: String, also extra: [UInt8]) -> String {
        let bytes = text.utf8.enumerated().map { place, byte -> UInt8 in
            let isAllowed = byte.isLetter || byte.isDigit && place > 0 || extra.contains(byte)
            return isAllowed ? byte : UInt8(ascii: "_")
        }
        return bytes.isEmpty ? "_" : String(decoding: bytes, as: UTF8.self)
    }
}
