import Foundation

@testable import AppStoreSimulator

extension Simulator {
    /// One verifyReceipt call with the right secret, unless another is given.
    func ask(
        _ receipt: String, password: String? = nil, at environment: StoreEnvironment = .production,
        excludingOld: Bool = false
    ) throws -> [String: Any] {
        let request: [String: Any] = [
            "receipt-data": receipt, "password": password ?? sharedSecret, "exclude-old-transactions": excludingOld,
        ]
        return try object(answer(Array(JSONSerialization.data(withJSONObject: request)), at: environment))
    }

    /// One control call.
    func control(_ method: String, _ path: String, _ body: String = "") throws -> (code: Int, json: [String: Any]) {
        let reply = respond(to: SimulatorRequest(method: method, path: path, body: Array(body.utf8)))
        return (reply.code, try object(reply.body))
    }

    private func object(_ bytes: [UInt8]) throws -> [String: Any] {
        let json = try JSONSerialization.jsonObject(with: Data(bytes))
        guard let object = json as? [String: Any] else { throw NotAnObject() }
        return object
    }
}

struct NotAnObject: Error {}

extension [String: Any] {
    var status: Int? { self["status"] as? Int }
    var latestRows: [[String: Any]] { self["latest_receipt_info"] as? [[String: Any]] ?? [] }
    var deviceRows: [[String: Any]] {
        (self["receipt"] as? [String: Any])?["in_app"] as? [[String: Any]] ?? []
    }
    var pending: [String: Any] { (self["pending_renewal_info"] as? [[String: Any]])?.first ?? [:] }
}

extension CustomerAction.Kind {
    var action: CustomerAction { CustomerAction(self) }
}
