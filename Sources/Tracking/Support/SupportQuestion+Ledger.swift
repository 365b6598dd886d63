import AppStore
import Ledger
import Subscriptions

extension SupportQuestion {
    /// The budget that the call is taken from.
    var callKind: CallKind {
        switch self {
        case .testNotification, .testStatus, .extensionStatus: .single
        case .transaction: .transactions
        case .history: .history
        case .refunds: .refunds
        case .change(let change, _):
            switch change {
            case .extend, .accountToken: .extensions
            case .extendAll: .single
            case .consumption: .transactions
            }
        }
    }

    /// What the audit log says of it.
    func recorded(in environment: StoreEnvironment) -> [String: String] {
        let (call, subject): (String, String?) =
            switch self {
            case .testNotification: ("test_notification", nil)
            case .testStatus: ("test_status", nil)
            case .transaction(let id): ("transaction", id)
            case .history(let id): ("history", id)
            case .refunds(let id): ("refunds", id)
            case .extensionStatus(let product, _): ("extension_status", product)
            case .change(let change, _): (change.kind.rawValue, change.subject)
            }
        return ["call": call, "subject": subject, "environment": environment.rawValue].compactMapValues { $0 }
    }
}

extension SupportChange {
    fileprivate var kind: WantedSupportCall.Kind {
        switch self {
        case .extend: .extend
        case .extendAll: .extendAll
        case .consumption: .consumption
        case .accountToken: .accountToken
        }
    }

    /// The change as the ledger stores it.
    func wanted(in environment: StoreEnvironment) -> WantedSupportCall {
        WantedSupportCall(kind, in: environment, about: subject, asking: body)
    }
}
