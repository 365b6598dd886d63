import Ledger
import Subscriptions
import Tracking

extension LedgerStatus {
    /// What an operator should look at, one phrase each; empty while all is well.
    var attention: [String] {
        var phrases = pauses.map { "\($0.pause.place(in: $0.bundleID)) is paused" }
        phrases += heldSecrets.map { "Apple refuses the shared secret of \($0.pause.place(in: $0.bundleID))" }
        phrases += doubtfulSecrets.map {
            "Apple refuses the shared secret of \($0.bundleID) in \($0.doubt.environment.rawValue) about \($0.doubt.shown)"
        }
        phrases += refusedBundles.filter(\.isOnly).map {
            "every receipt for \($0.bundleID) names another app, \($0.named)"
        }
        let overdue = lanes.reduce(0) { $0 + $1.overdue }
        if overdue > 0 {
            let waiting = overdue.of("receipt is", "receipts are")
            phrases.append("\(waiting) overdue\(workers == 0 ? ", and no worker runs" : "")")
        }
        phrases += incidents.filter { $0.closedAt == nil }.map { "\($0.bundleID) has an open incident" }
        phrases += invariants.filter { $0.left > 0 }.map { "the invariant \($0.name) is violated" }
        phrases += lateDeliveries.map { "deliveries of \($0.bundleID) wait" }
        phrases += unpolled.filter { !$0.hasServerKey }.map {
            "\($0.subjects.of("purchase", "purchases")) of \($0.bundleID) known by notification only"
        }
        phrases += productsWithoutKind.map { "\($0.id) of \($0.bundleID) has no kind" }
        phrases += lateConsumption.map { "Apple waits for what was used of \($0.transactionID) of \($0.bundleID)" }
        phrases += webhookTroubles.map { "webhook \($0.id) \($0.trouble)" }
        return phrases
    }
}
