/// A picture of the schedule: when one subscription of each kind is asked about, how many calls that makes on each day of a
/// year, and how old answers get.
struct ScheduleChart {
    private static let days = 62.0
    private static let colours = ["#2a6f97", "#e07a1f"]
    /// One for each mix of subscribers.
    let years: [SimulatedYear]

    /// The picture as SVG.
    var svg: String {
        let lines =
            [
                #"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 700" font-family="sans-serif" font-size="12">"#,
                #"<rect width="760" height="700" fill="white"/>"#,
            ] + checks + callsADay + ages + [
                Mark.text(
                    16, 686, "Drawn by Benchmarks/run year from the schedule's own functions.", fill: "#666"), "</svg>",
                "",
            ]
        return lines.joined(separator: "\n")
    }

    /// When one subscription is asked about.
    private var checks: [String] {
        let panel = Panel(
            title: "When Apple is asked about a subscription that renews", top: 44, height: 108, xMax: Self.days,
            yMax: 1)
        let rows = PeriodKind.allCases.enumerated().flatMap { row, kind in
            let y = 62 + Double(row) * 36
            let axis = Mark.line(panel.x(0), y, panel.x(Self.days), y, "#bbb")
            let dots = SimulatedYear.moments(of: kind, days: Self.days).map { day in
                ##"<circle cx="\##(panel.x(day))" cy="\##(y)" r="4.5" fill="#2a6f97"/>"##
            }
            let ends = stride(from: Double(kind.days), through: Self.days, by: Double(kind.days)).map { day in
                ##"<path d="M\##(panel.x(day)) \##(y + 6)l4 8h-8z" fill="#c1121f"/>"##
            }
            return [axis, Mark.text(16, y + 4, kind.rawValue)] + ends + dots
        }
        return panel.frame(xStep: 10, xName: "days since the purchase; dots are calls, triangles are ends of periods")
            + rows
    }

    /// Calls on each day of the year.
    private var callsADay: [String] {
        let rates = years.map { year in
            let subscribers = year.calls.runningDays / Double(SimulatedYear.days)
            return year.calls.onDay.map { Double($0) / subscribers * 100 }
        }
        let most = ((rates.joined().max() ?? 1) / 10).rounded(.up) * 10
        let panel = Panel(
            title: "Calls on each day of a year, for 100 subscribers (asking about each daily would be 100)", top: 240,
            height: 150, xMax: Double(SimulatedYear.days), yMax: most)
        let curves = zip(rates, Self.colours).map { rates, colour in
            let points = rates.enumerated().map { "\(panel.x(Double($0.offset) + 0.5)),\(panel.y($0.element))" }
            return #"<polyline points="\#(points.joined(separator: " "))" fill="none" stroke="\#(colour)"/>"#
        }
        return panel.frame(xStep: 30, xName: "day of the year", yStep: 10) + curves + legend(y: 350)
    }

    /// How old answers are.
    private var ages: [String] {
        let shares = years.map { year in
            let all = year.staleness.days.reduce(0, +)
            return stride(from: 0, to: Staleness.steps, by: 4).map { step in
                year.staleness.days[step..<(step + 4)].reduce(0, +) / all * 100
            }
        }
        let shown = Double(shares.map { ($0.lastIndex { $0 > 0 } ?? 0) + 1 }.max() ?? 1)
        let most = ((shares.joined().max() ?? 1) / 10).rounded(.up) * 10
        let panel = Panel(
            title: "How old the newest answer is, in percent of the time that subscriptions run", top: 478, height: 150,
            xMax: shown, yMax: most)
        let bars = zip(shares, Self.colours).enumerated().flatMap { place, series in
            series.0.prefix(Int(shown)).enumerated().map { day, share in
                let left = panel.x(Double(day) + 0.1 + Double(place) * 0.4)
                let width = panel.x(Double(day) + 0.5 + Double(place) * 0.4) - left
                return Mark.bar(left, panel.y(share), width, panel.y(0) - panel.y(share), series.1)
            }
        }
        return panel.frame(xStep: 5, xName: "days", yStep: 10) + bars + legend(y: 500, withAges: true)
    }

    private func legend(y: Double, withAges: Bool = false) -> [String] {
        zip(years, Self.colours).enumerated().flatMap { row, entry in
            let top = y + Double(row) * 18
            let ages = [0.5, 0.99].map { (entry.0.staleness.days(atPart: $0) * 10).rounded() / 10 }
            return [
                Mark.bar(320, top - 9, 12, 10, entry.1),
                Mark.text(338, top, entry.0.mix.name + (withAges ? ": half \(ages[0]) d, 99 % \(ages[1]) d" : "")),
            ]
        }
    }
}
