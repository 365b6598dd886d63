import Ledger
import Server
import Subscriptions
import Tracking

extension LedgerStatus {
    /// Today so far, one line for each app.
    var todayLines: [String] {
        let left = isSummarised ? "" : " Not all subscriptions are in it: workers read them for the first time."
        return today.isEmpty ? [] : [today.map(\.text).joined(separator: "\n") + left]
    }
}

extension TodaySoFar {
    /// The day in one sentence, as unfinished.
    fileprivate var text: String {
        let amounts = revenue.compactMap(\.now)
        let money =
            amounts.isEmpty
            ? "no MRR" : "MRR " + amounts.map { "\($0.amount.cents.decimal) \($0.currency)" }.joined(separator: ", ")
        let moves = "\(figures.began) began to pay, \(figures.returned) came back, \(figures.churned) stopped"
        let trials =
            "trials: \(figures.trialsStarted) began, \(figures.trialsConverted) paid, \(figures.trialsLost) lost"
        return "Today so far (\(figures.day) UTC, incomplete), \(bundleID?.text ?? "all apps"): "
            + "\(figures.active) with access, \(figures.trial) in a trial, \(figures.paying) paying, \(money); "
            + "\(moves); \(trials)."
    }

    /// The day as JSON.
    var json: JSONValue {
        [
            "bundle_id": .optional(bundleID?.text), "day": .string(figures.day), "complete": false,
            "active": .integer(figures.active), "trial": .integer(figures.trial), "paying": .integer(figures.paying),
            "began": .integer(figures.began), "returned": .integer(figures.returned),
            "churned": .integer(figures.churned), "trials_started": .integer(figures.trialsStarted),
            "trials_converted": .integer(figures.trialsConverted), "trials_lost": .integer(figures.trialsLost),
            "mrr": .array(
                revenue.compactMap(\.now).map {
                    ["currency": .string($0.currency), "amount": .string($0.amount.decimal)]
                }),
        ]
    }
}

extension Overview.Revenue {
    /// The amount of now.
    fileprivate var now: (currency: String, amount: Milliunits)? {
        days.last.map { (currency, Milliunits($0.milliunits)) }
    }
}

extension Milliunits {
    /// The amount to the nearest hundredth, for people.
    fileprivate var cents: Milliunits { Milliunits(10 * ((count + (count < 0 ? -5 : 5)) / 10)) }
}
