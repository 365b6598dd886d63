import Ledger

/// The charts of the overview.
struct OverviewCharts {
    let overview: Overview

    /// All charts, in the order of the page.
    var all: [Chart] { overview.revenue.enumerated().map(revenue) + [subscriptions, churn, trials, checks] }

    private var buckets: Buckets { Buckets(overview.days.map(\.day)) }

    private func revenue(_ position: Int, _ revenue: Overview.Revenue) -> Chart {
        let buckets = Buckets(revenue.days.map(\.day))
        let amounts = buckets.last(of: revenue.days.map(\.milliunits))
        return Chart(
            id: "mrr-\(position)", title: "Monthly recurring revenue in \(revenue.currency)",
            description: "Now it is \(amountText(amounts.last ?? 0)) \(revenue.currency).",
            buckets: buckets.names,
            series: [
                Chart.Series(name: revenue.currency, values: amounts.map { Double($0) / 1_000 }, style: "first")
            ],
            asBars: false,
            table: AdminTable(
                "Monthly recurring revenue in \(revenue.currency)", ["Period", revenue.currency],
                zip(buckets.names, amounts).reversed().map { [.text($0), .amount($1)] }),
            format: { grouped(Int64($0.rounded())) })
    }

    private var subscriptions: Chart {
        chart(
            id: "active", title: "Subscriptions with access", asBars: false, levels: true,
            [("With access", \.active), ("Paying", \.paying), ("In a trial", \.trial)])
    }

    private var churn: Chart {
        chart(
            id: "churn", title: "Subscriptions that stopped paying", asBars: true, levels: false,
            [("Stopped paying", \.churned)], alsoListed: [("Began to pay", \.began), ("Came back", \.returned)])
    }

    private var trials: Chart {
        chart(
            id: "trials", title: "Trials that began", asBars: true, levels: false, [("Began", \.trialsStarted)],
            alsoListed: [("Were followed by a charge", \.trialsConverted), ("Were lost", \.trialsLost)])
    }

    private typealias Figure = (name: String, of: KeyPath<Overview.Day, Int64>)

    private func chart(
        id: String, title: String, asBars: Bool, levels: Bool, _ figures: [Figure], alsoListed: [Figure] = []
    ) -> Chart {
        let buckets = buckets
        let columns = (figures + alsoListed).map { figure in
            let values = overview.days.map { $0[keyPath: figure.of] }
            return (name: figure.name, values: levels ? buckets.last(of: values) : buckets.sum(of: values))
        }
        let newest = columns.map { "\($0.name.lowercased()): \(grouped($0.values.last ?? 0))" }
        return Chart(
            id: id, title: title,
            description: "\(buckets.names.last ?? "No day"): \(newest.joined(separator: ", ")).",
            buckets: buckets.names,
            series: zip(columns.prefix(figures.count), ["first", "second", "third"]).map { column, style in
                Chart.Series(name: column.name, values: column.values.map(Double.init), style: style)
            },
            asBars: asBars,
            table: AdminTable(
                title, ["Period"] + columns.map(\.name),
                buckets.names.indices.reversed().map { index in
                    [.text(buckets.names[index])] + columns.map { .number($0.values[index]) }
                }),
            format: { grouped(Int64($0)) })
    }

    private var checks: Chart {
        let columns: [(String, KeyPath<Overview.Hour, Int64>, String)] = [
            ("Verified", \.verified, "first"), ("Refused", \.rejected, "second"), ("No answer", \.failed, "alarm"),
        ]
        let newest = overview.hours.last
        return Chart(
            id: "checks", title: "Apple's answers by hour",
            description: newest.map {
                "Since \($0.hour) UTC: \(grouped($0.verified)) verified, \(grouped($0.rejected)) refused, "
                    + "\(grouped($0.failed)) without an answer."
            } ?? "No hour is over.",
            buckets: overview.hours.map(\.hour),
            series: columns.map { name, value, style in
                Chart.Series(name: name, values: overview.hours.map { Double($0[keyPath: value]) }, style: style)
            },
            asBars: true,
            table: AdminTable(
                "Apple's answers by hour (UTC)", ["From"] + columns.map(\.0),
                overview.hours.reversed().map { hour in
                    [.text(hour.hour)] + columns.map { .number(hour[keyPath: $0.1]) }
                }),
            format: { grouped(Int64($0)) })
    }
}
