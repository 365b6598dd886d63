/// A picture of the schedule: when one subscription of each kind is asked about, and how many calls that makes.
struct ScheduleChart {
    static let days = 62.0
    private static let (left, width) = (92.0, 620.0)
    let year: SimulatedYear

    /// The picture as SVG.
    var svg: String {
        var lines = [
            #"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 330" font-family="sans-serif" font-size="12">"#,
            #"<rect width="760" height="330" fill="white"/>"#,
            text(
                12, 20, "When Apple is asked about a subscription that renews (days since it was stored)",
                weight: "bold"),
        ]
        for (row, kind) in PeriodKind.allCases.enumerated() {
            lines += timeline(kind, y: 56 + Double(row) * 36)
        }
        lines += stride(from: 0.0, through: Self.days, by: 10).map { day in
            text(x(day), 160, "\(Int(day))", anchor: "middle", fill: "#666")
        }
        let subscribers = Double(year.naiveCalls) / Double(SimulatedYear.days)
        lines.append(
            text(12, 196, "Calls a day for each 100 subscribers (20 weekly, 50 monthly, 30 yearly)", weight: "bold"))
        lines += bar(y: 212, "daily", of: 100, fill: "#bbb")
        lines += bar(
            y: 246, "scheduled", of: Double(year.calls) / Double(SimulatedYear.days) / subscribers * 100,
            fill: "#2a6f97")
        lines.append(
            text(
                12, 300,
                "Triangles are ends of periods. Drawn by Benchmarks/run year from the schedule's own functions.",
                fill: "#666"))
        return (lines + ["</svg>", ""]).joined(separator: "\n")
    }

    private func timeline(_ kind: PeriodKind, y: Double) -> [String] {
        let axis = ##"<line x1="\##(x(0))" y1="\##(y)" x2="\##(x(Self.days))" y2="\##(y)" stroke="#ccc"/>"##
        let checks = SimulatedYear.moments(of: kind, days: Self.days).map { day in
            ##"<circle cx="\##(x(day))" cy="\##(y)" r="4" fill="#2a6f97"/>"##
        }
        let ends = stride(from: Double(kind.days), through: Self.days, by: Double(kind.days)).map { day in
            ##"<path d="M\##(x(day)) \##(y + 6)l4 8h-8z" fill="#c1121f"/>"##
        }
        return [axis, text(12, y + 4, kind.rawValue)] + ends + checks
    }

    private func bar(y: Double, _ name: String, of calls: Double, fill: String) -> [String] {
        let length = (calls / 100 * (Self.width - 60) * 10).rounded() / 10
        return [
            text(12, y + 16, name),
            #"<rect x="\#(Self.left)" y="\#(y)" width="\#(length)" height="24" fill="\#(fill)"/>"#,
            text(Self.left + length + 8, y + 16, "\((calls * 10).rounded() / 10)"),
        ]
    }

    private func x(_ day: Double) -> Double { ((Self.left + day / Self.days * Self.width) * 10).rounded() / 10 }

    private func text(
        _ x: Double, _ y: Double, _ words: String, anchor: String = "start", weight: String = "normal",
        fill: String = "#222"
    ) -> String {
        #"<text x="\#(x)" y="\#(y)" text-anchor="\#(anchor)" font-weight="\#(weight)" fill="\#(fill)">\#(words)</text>"#
    }
}
