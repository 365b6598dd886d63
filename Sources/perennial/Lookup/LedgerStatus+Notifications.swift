import Ledger
import Server
import Subscriptions
import Tracking

extension LedgerStatus {
    /// What Apple's notifications wait for, in sentences.
    var notificationLines: [String] {
        let waiting = waitingNotifications.of("notification waits", "notifications wait")
        let whole = "Notifications: \(waiting) until Apple was asked for everything it knows"
        return (waitingNotifications > 0 ? [whole] : []) + lateConsumption.map(\.text)
    }
}

extension LateConsumption {
    /// What to do, in one sentence.
    fileprivate var text: String {
        let sandbox = environment == .sandbox ? " --sandbox" : ""
        return
            "Refund request: Apple asked at \(askedAt.iso8601) what was used of \(transactionID) of \(bundleID), and waits "
            + "for 12 hours. Answer with `perennial support consumption --app \(bundleID)\(sandbox) --transaction-id "
            + "\(transactionID)` and --customer-consented, or --not-consented if the customer does not consent"
    }

    var json: JSONValue {
        [
            "bundle_id": .string(bundleID.text), "environment": .string(environment.rawValue),
            "transaction_id": .string(transactionID.text), "asked_at": .string(askedAt.iso8601),
        ]
    }
}
