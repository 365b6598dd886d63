import Subscriptions
import Testing

@testable import Server
@testable import Tracking

@Suite("Charts have round lines and stay on the paper") struct ChartTests {
    @Test(
        "The lines are at round numbers",
        arguments: [
            (0.0, 1.0, 1), (-4, 1, 1), (0.3, 1, 1), (1, 1, 1), (1.5, 1, 2), (2.1, 1, 3), (5, 2, 3), (7, 2, 4),
            (10, 5, 2),
            (99, 50, 2), (101, 50, 3), (450_000, 200_000, 3), (1_060, 500, 3),
        ])
    func theLinesAreAtRoundNumbers(highest: Double, step: Double, steps: Int) {
        let scale = Scale(highest: highest, buckets: 1)
        #expect(scale.step == step && scale.steps == steps && scale.top >= highest)
        #expect(scale.grid.count == steps && scale.grid.last == "12")
    }

    @Test("The values of the revenue chart are rounded")
    func revenueIsRounded() throws {
        let overview = Overview(
            days: [],
            revenue: [
                Overview.Revenue(
                    currency: "USD", days: [Overview.Amount(day: "2026-11-24", milliunits: 974_970)])
            ], hours: [],
            staleness: Overview.Staleness(
                overdue: 0, oldestDueAt: nil, workers: 1, incidents: 0, violations: 0, unasked: 0, isComplete: true,
                summarisedAt: nil, eventsBehind: 0))
        let chart = try #require(overview.charts.first)
        #expect(chart.spots.map(\.text).allSatisfy { $0.hasSuffix("USD: 975") }, "\(chart.spots)")
        #expect(!chart.spots.isEmpty)
    }

    @Test("Points and bars stay on the paper")
    func pointsAndBarsStayOnThePaper() {
        let scale = Scale(highest: 10, buckets: 3)
        #expect(scale.y(0) == Chart.height - Chart.bottom && scale.y(10) == Chart.top)
        #expect(scale.y(-5) == scale.y(0) && scale.y(99) == scale.y(10))
        #expect(scale.points(of: [0, 5, 10]) == "158.7,192 348,102 537.3,12")
        let bars = scale.bars(of: [
            Chart.Series(name: "a", values: [1, 0, 4], style: "first"),
            Chart.Series(name: "b", values: [1, 0, 6], style: "second"),
        ])
        #expect(bars.map(\.style) == ["first", "second", "first", "second"])
        #expect(bars.map(\.height) == ["18", "18", "72", "108"])
        #expect(bars.map(\.y) == ["174", "156", "120", "12"])
    }

    @Test("Days become months when there are many")
    func daysBecomeMonthsWhenThereAreMany() {
        let few = Buckets(["2026-01-31", "2026-02-01"])
        #expect(few.names == ["2026-01-31", "2026-02-01 so far"] && few.last(of: [3, 4]) == [3, 4])
        let days = (0..<100).map { $0 < 40 ? "2026-01-\($0)" : "2026-02-\($0)" }
        let many = Buckets(days)
        #expect(many.names == ["2026-01", "2026-02 so far"])
        #expect(many.last(of: (0..<100).map { Int64($0) }) == [39, 99])
        #expect(many.sum(of: [Int64](repeating: 1, count: 100)) == [40, 60])
    }

    @Test(
        "Numbers are grouped, and what rounds to 0 has no sign",
        arguments: [
            (0, "0", "0.00"), (-4, "−4", "0.00"), (-5, "−5", "−0.01"), (4, "4", "0.00"),
            (999, "999", "1.00"), (1_000, "1\u{202F}000", "1.00"),
            (-1_234_567, "−1\u{202F}234\u{202F}567", "−1\u{202F}234.57"),
        ])
    func numbersAreGrouped(number: Int64, whole: String, amount: String) {
        #expect(grouped(number) == whole && amountText(number) == amount)
    }

    @Test("Instants are readable")
    func instantsAreReadable() {
        #expect(readable(Instant(milliseconds: 1_767_225_600_123)) == "2026-01-01 00:00:00 UTC")
        #expect(address("/a", ["q": "ä &=?#/"]) == "/a?q=%C3%A4%20%26%3D%3F%23%2F")
    }
}
