import Foundation
import Testing

@testable import AppStoreSimulator

/// A customer of a store, whose actions go through the control API.
struct Shopper {
    let store: Simulator
    let name: String

    /// A new customer of a kind.
    init(_ kind: String, in store: Simulator) throws {
        self.store = store
        let made = try store.control("POST", "/simulator/customers", #"{"kind":"\#(kind)"}"#)
        name = try #require(made.json["customer"] as? String)
    }

    /// A customer who exists.
    init(of name: String, in store: Simulator) {
        self.store = store
        self.name = name
    }

    /// The second customer on the same Apple account.
    var second: Shopper { Shopper(of: name + "b", in: store) }

    /// One action, given as the members of its object without the braces.
    func act(_ members: String) throws -> (code: Int, json: [String: Any]) {
        try store.control("POST", "/simulator/customers/\(name)/actions", "{\(members)}")
    }

    /// An accepted purchase: its transaction and the receipt that holds it.
    func buy(_ members: String) throws -> (transaction: [String: Any], receipt: String) {
        let answer = try act(members)
        #expect(answer.code == 200, "\(answer.json)")
        let transaction = try #require(answer.json["transaction"] as? [String: Any])
        return (transaction, try #require(answer.json["receipt"] as? String))
    }

    /// What the truth says was to be delivered.
    func deliveries() throws -> [[String: Any]] {
        let truth = try store.control("GET", "/simulator/truth/\(name)").json
        return try #require(truth["deliveries"] as? [[String: Any]])
    }
}

extension [String: Any] {
    func text(_ key: String) -> String? { self[key] as? String }
    func number(_ key: String) -> Int64? { self[key] as? Int64 }
}

extension [[String: Any]] {
    func texts(_ key: String) -> [String?] { map { $0.text(key) } }
    func row(_ id: String?) -> [String: Any]? { first { $0.text("transaction_id") == id } }
}
