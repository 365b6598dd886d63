import Subscriptions

extension SimulatedYear {
    /// The figures for people.
    var report: String {
        let all = calls.all
        let perDay = all / Int(Self.days)
        var lines = [
            "\(mix.name); a new receipt after each renewal",
            "calls a day: \(perDay) on average, \(calls.onDay.min() ?? 0) to \(calls.onDay.max() ?? 0)",
            "calls over asking daily about …",
            "  each subscription that the schedule follows, once: \(part(of: calls.followedDays)) "
                + "(at most \(mix.partMax) is wished)",
            "  each subscription that is not over, once: \(part(of: calls.runningDays))",
            "  each receipt that was ever stored: \(part(of: calls.storedDays))",
            "calls for "
                + CallReason.allCases.map { "\($0.rawValue): \(percent(calls.byReason[$0] ?? 0))" }
                .joined(separator: ", "),
            "calls for "
                + mix.shares.map { "\($0.kind.rawValue): \(percent(calls.byKind[$0.kind] ?? 0))" }
                .joined(separator: ", "),
            "how a period ended, known after its end (99.9 %; at most 3 min is wished): "
                + Self.shown(Self.quantile(0.999, of: news.outcomes)) + ", all: "
                + Self.shown(news.outcomes.last ?? 0),
            "until news is known: count, then 50 %, 95 %, 99 % and all of it",
        ]
        for kind in Turn.News.allCases {
            let sorted = (news.delays[kind] ?? []).sorted()
            guard let last = sorted.last else { continue }
            let quantiles = [0.5, 0.95, 0.99].map { Self.shown(Self.quantile($0, of: sorted)) }
            lines.append(
                "  \(kind.rawValue): \(sorted.count), \(quantiles.joined(separator: ", ")), \(Self.shown(last))")
        }
        let ages = [0.5, 0.95, 0.99].map { Self.shown(staleness.days(atPart: $0) * 86_400) }
        lines.append(
            "age of the newest answer while running: 50 %, 95 %, 99 % and all of the time: "
                + ages.joined(separator: ", ") + ", \(Self.shown(staleness.oldestDays * 86_400))")
        return lines.joined(separator: "\n")
    }

    /// Calls over those that asking once on so many days would take.
    func part(of days: Double) -> Double { Self.rounded(Double(calls.all) / days) }

    private static func rounded(_ part: Double) -> Double { (part * 1000).rounded() / 1000 }

    private func percent(_ count: Int) -> String {
        "\(Int((Double(count) / Double(max(calls.all, 1)) * 100).rounded())) %"
    }

    private static func quantile(_ part: Double, of sorted: [Double]) -> Double {
        sorted.isEmpty ? 0 : sorted[Int(Double(sorted.count - 1) * part)]
    }

    private static func shown(_ seconds: Double) -> String {
        switch seconds {
        case ..<300: "\(Int(seconds.rounded())) s"
        case ..<7200: "\(Int((seconds / 60).rounded())) min"
        case ..<172_800: "\(Int((seconds / 3600).rounded())) h"
        default: "\((seconds / 8640).rounded() / 10) d"
        }
    }
}
