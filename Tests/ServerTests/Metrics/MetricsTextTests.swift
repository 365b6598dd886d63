import Metrics
import Testing
import Tracking

@testable import Server

@Suite("Metrics have the text format of Prometheus")
struct MetricsTextTests {
    @Test("Counters, gauges and histograms are written in the format exactly")
    func exact() {
        let registry = MetricsRegistry()
        registry.counter(.notifications, [("version", "2"), ("app", "a\"b\\c\nd")]).increment(by: 3)
        registry.gauge(.dueLag, [("app", "x"), ("lane", "expiring")]).set(1.5)
        for value in [1, 2, 3, 1_000] { registry.histogram(.claimReceipts).record(value) }
        #expect(
            MetricsText.text(of: registry.contents) == #"""
                # HELP perennial_claim_receipts Receipts in one claim.
                # TYPE perennial_claim_receipts histogram
                perennial_claim_receipts_bucket{le="1"} 1
                perennial_claim_receipts_bucket{le="2"} 2
                perennial_claim_receipts_bucket{le="5"} 3
                perennial_claim_receipts_bucket{le="10"} 3
                perennial_claim_receipts_bucket{le="20"} 3
                perennial_claim_receipts_bucket{le="50"} 3
                perennial_claim_receipts_bucket{le="100"} 3
                perennial_claim_receipts_bucket{le="200"} 3
                perennial_claim_receipts_bucket{le="500"} 3
                perennial_claim_receipts_bucket{le="+Inf"} 4
                perennial_claim_receipts_sum 1006
                perennial_claim_receipts_count 4
                # HELP perennial_due_lag_seconds How long the first due receipt has been waiting; in the lane import, since it was stored.
                # TYPE perennial_due_lag_seconds gauge
                perennial_due_lag_seconds{app="x",lane="expiring"} 1.5
                # HELP perennial_notifications_total Notifications of Apple's, by what they did.
                # TYPE perennial_notifications_total counter
                perennial_notifications_total{app="a\"b\\c\nd",version="2"} 3

                """#)
    }

    @Test("Names of other makers become names of the format, and their text can be read")
    func strangeNames() throws {
        let registry = MetricsRegistry()
        Counter(label: "http.requests-total", dimensions: [("9 lives", "é{},=")], factory: registry).increment()
        Timer(label: "some timer", factory: registry).recordMilliseconds(20)
        Gauge(label: "7", factory: registry).record(-0.25)
        let page = try MetricsReader(MetricsText.text(of: registry.contents))
        #expect(page.value("http_requests_total", ["__lives": "é{},="]) == 1)
        #expect(page.value("some_timer_sum") == 0.02 && page.value("_") == -0.25)
    }

    @Test("A metric has a bounded number of series, and says when that was too few")
    func bounded() throws {
        let registry = MetricsRegistry()
        for number in 0..<(MetricsRegistry.seriesMax + 7) {
            registry.counter(.answers, [("app", "a\(number)")]).increment()
        }
        let page = try MetricsReader(MetricsText.text(of: registry.contents))
        #expect(page.samples.count { $0.name == Metric.answers.rawValue } == MetricsRegistry.seriesMax)
        #expect(page.value(Metric.seriesDropped.rawValue) == 7)
    }

    @Test("One name is of one kind")
    func oneKind() throws {
        let registry = MetricsRegistry()
        registry.counter(.answers).increment()
        Gauge(label: Metric.answers.rawValue, factory: registry).record(99)
        let page = try MetricsReader(MetricsText.text(of: registry.contents))
        #expect(page.value(Metric.answers.rawValue) == 1)
    }

    @Test("Every metric of ours is named as Prometheus advises")
    func names() {
        for metric in Metric.allCases {
            #expect(MetricName.metric(metric.rawValue) == metric.rawValue)
            #expect(metric.rawValue.hasSuffix("_total") == (metric.kind == .counter), "\(metric)")
            #expect(metric.help.hasSuffix(".") && metric.help.count < 100, "\(metric)")
            if case .histogram(let bounds) = metric.kind { #expect(bounds == bounds.sorted() && !bounds.isEmpty) }
        }
    }

    @Test("Counting from many tasks at once loses nothing")
    func concurrent() async throws {
        let registry = MetricsRegistry()
        await withTaskGroup { group in
            for task in 0..<8 {
                group.addTask {
                    for _ in 0..<1_000 {
                        registry.counter(.answers, [("app", "\(task % 2)")]).increment()
                        registry.histogram(.settlementSeconds).record(0.5)
                    }
                }
            }
        }
        let page = try MetricsReader(MetricsText.text(of: registry.contents))
        #expect(page.value(Metric.answers.rawValue, ["app": "0"]) == 4_000)
        #expect(page.value("perennial_settlement_seconds_count") == 8_000)
    }
}
