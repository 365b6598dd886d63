import Ledger
import Server
import Subscriptions
import Tracking

extension LedgerStatus {
    /// What Apple's notifications wait for, in sentences.
    var notificationLines: [String] {
        unpolled.map(\.text) + lateConsumption.map(\.text)
    }
}

extension LedgerStatus.UnpolledSubjects {
    /// What to do, in one sentence.
    fileprivate var text: String {
        let known = subjects.of("subscription or purchase is", "subscriptions and purchases are")
        let todo =
            hasServerKey
            ? "a worker asks the Server API about them"
            : "Apple is not asked about them; store a key with `perennial app server-key --app \(bundleID)`"
        return "Notifications: \(known) of \(bundleID) known by notification only; \(todo)"
    }

    var json: JSONValue {
        ["bundle_id": .string(bundleID.text), "subjects": .integer(subjects), "has_server_key": .bool(hasServerKey)]
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
