import Synchronization

/// What the support calls of the Server API left behind. It is in memory only.
final class SupportBook: Sendable {
    /// An extension of one subscription; the same request gets the same answer again.
    struct Extension: Sendable {
        let originalID: String
        let webOrderLineItemID: String?
        let effective: StoreTime
    }

    /// An extension of all subscriptions of a product.
    struct MassExtension: Sendable {
        let environment: StoreEnvironment
        let productID: String
        let requestID: String
        let countries: [String]
        let completedAt: StoreTime
        let succeeded: Int
        let failed: Int
    }

    /// What an app said about the consumption of a purchase.
    struct Consumption: Encodable, Sendable {
        let transactionID: String
        let at: Int64
        let body: String

        enum CodingKeys: String, CodingKey {
            case body
            case transactionID = "transaction_id"
            case at = "at_ms"
        }
    }

    private struct State: Sendable {
        var extensions: [String: Extension] = [:]
        var massExtensions: [String: MassExtension] = [:]
        var consumptions: [Consumption] = []
    }

    private let state = Mutex(State())

    func extended(_ key: String) -> Extension? { state.withLock { $0.extensions[key] } }

    func note(_ done: Extension, key: String) { state.withLock { $0.extensions[key] = done } }

    func massExtension(_ key: String) -> MassExtension? { state.withLock { $0.massExtensions[key] } }

    func note(_ done: MassExtension, key: String) { state.withLock { $0.massExtensions[key] = done } }

    var consumptions: [Consumption] { state.withLock { $0.consumptions } }

    func note(_ said: Consumption) { state.withLock { $0.consumptions.append(said) } }
}
