package import Metrics
import Synchronization
import Tracking

/// The registry of this process's metrics, for `/metrics`.
///
/// It is a factory of swift-metrics, so that a program that embeds the product may also pass it to
/// `MetricsSystem.bootstrap`. A metric has at most `seriesMax` series. More are counted as dropped, so that a caller
/// cannot fill the memory.
package final class MetricsRegistry: MetricsFactory {
    /// The most series of one metric: enough for six lanes of a few hundred apps.
    static let seriesMax = 5_000

    /// A label and its value.
    struct Label: Sendable, Hashable, Comparable {
        let name: String
        let value: String

        static func < (left: Label, right: Label) -> Bool { (left.name, left.value) < (right.name, right.value) }
    }

    /// One series of a metric.
    enum Series: Sendable {
        case value(MetricValue)
        case histogram(MetricHistogram)
    }

    /// One metric with its series by their labels.
    struct Family: Sendable {
        let name: String
        let help: String
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
    func clear(_ metric: Metric) {
        families.withLock { $0[metric.rawValue]?.series = [:] }
    }

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
        if case .value(let dropped) = families[name]?.series[[]] { return dropped.increment(by: Int64(1)) }
        let first = MetricValue()
        first.increment(by: Int64(1))
        families[name]?.series[[]] = .value(first)
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
/// lives as long as the process.
extension MetricsRegistry {
    /// Returns a counter.
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
    package func makeRecorder(
        label: String, dimensions: [(String, String)], aggregate: Bool
    ) -> any RecorderHandler {
        if aggregate { histogram(label, dimensions) } else { value(label, dimensions, .gauge) }
    }

    /// Returns a histogram of seconds.
    package func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        histogram(label, dimensions)
    }

    /// Does nothing: a counter that disappeared would look like a restart.
    package func destroyCounter(_ handler: any CounterHandler) {}
    /// Does nothing: a series lives as long as the process.
    package func destroyFloatingPointCounter(_ handler: any FloatingPointCounterHandler) {}
    /// Does nothing: a series lives as long as the process.
    package func destroyMeter(_ handler: any MeterHandler) {}
    /// Does nothing: a series lives as long as the process.
    package func destroyRecorder(_ handler: any RecorderHandler) {}
    /// Does nothing: a series lives as long as the process.
    package func destroyTimer(_ handler: any TimerHandler) {}
}
