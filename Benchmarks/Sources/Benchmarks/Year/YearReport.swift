import Subscriptions

extension SimulatedYear {
    /// The figures for people.
    var report: String {
        let perDay = calls / Int(Self.days)
        var lines = [
            "calls a day: \(perDay) on average, \(callsOnDay.min() ?? 0) to \(callsOnDay.max() ?? 0)",
            "over naive daily polling of the same receipts: \(part(of: naiveCallsOfAll))",
            "over naive daily polling of subscriptions that are not over only: \(part(of: naiveCalls))",
        ]
        for kind in PeriodKind.allCases { lines.append("calls, \(kind.rawValue): \(callsByKind[kind] ?? 0)") }
        lines.append("until news is known: count, then 50 %, 95 %, 99 % and all of it")
        for news in Turn.News.allCases {
            let sorted = (delays[news] ?? []).sorted()
            guard let last = sorted.last else { continue }
            let quantiles = [0.5, 0.95, 0.99].map { Self.shown(sorted[Int(Double(sorted.count - 1) * $0)]) }
            lines.append(
                "  \(news.rawValue): \(sorted.count), \(quantiles.joined(separator: ", ")), \(Self.shown(last))")
        }
        lines.append("longest time between two checks:")
        for (state, gap) in longestGaps.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
            lines.append("  \(state.rawValue): \(Self.shown(gap))")
        }
        return lines.joined(separator: "\n")
    }

    private func part(of naive: Int) -> String { "\((Double(calls) / Double(naive) * 1000).rounded() / 1000)" }

    private static func shown(_ seconds: Double) -> String {
        switch seconds {
        case ..<120: "\(Int(seconds.rounded())) s"
        case ..<7200: "\(Int((seconds / 60).rounded())) min"
        case ..<172_800: "\(Int((seconds / 3600).rounded())) h"
        default: "\((seconds / 8640).rounded() / 10) d"
        }
    }
}
