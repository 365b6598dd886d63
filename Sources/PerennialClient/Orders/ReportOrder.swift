import Foundation

#if canImport(CryptoKit)
    import CryptoKit
#else
    import Crypto
#endif

/// Where a device's payment is.
public enum ReportedState: String, Sendable, Hashable, CaseIterable {
    /// The customer agreed, and the payment is under way.
    case purchasing
    /// Another person has to agree first (Ask to Buy).
    case deferred
    /// The customer cancelled.
    case cancelled
    /// The payment failed.
    case failed
}

extension PerennialServer {
    /// The longest code of a report, in bytes.
    public static let codeBytesMax = 255

    /// Reports where the payment of an order is. A device does so without an API key, with the order's key.
    ///
    /// Returns the order's state, which a paid or expired order keeps. Throws `proof-refused` for an order that the
    /// server does not know, or whose proof is wrong; `too-many` after 10 calls a minute about an order.
    /// - Parameter code: An error code of StoreKit, for example, at most ``codeBytesMax`` bytes.
    public func report(
        _ state: ReportedState, code: String? = nil, of order: PlacedOrder
    ) async throws -> OrderState {
        let body = StateBody(state: state.rawValue, code: code, proof: try order.proof(state, code: code))
        let call = Call(
            method: "POST", path: "/v1/orders/\(try Call.part(order.id))/state", body: try JSONText.encode(body),
            isKeyed: false)
        return try await answer(StateAnswer.self, to: call).state
    }
}

extension PlacedOrder {
    /// Lower-case hex of HMAC-SHA256 with the order's key over `<order id>.<state>.<code, or nothing>`.
    func proof(_ state: ReportedState, code: String?) throws -> String {
        try proof(of: "\(id).\(state.rawValue).\(code ?? "")")
    }

    /// The same over `<order id>.<lower-case hex SHA-256 of the receipt>`.
    func proof(ofReceipt receipt: Data) throws -> String {
        try proof(of: "\(id).\(SHA256.hash(data: receipt).hexadecimal)")
    }

    private func proof(of message: String) throws -> String {
        guard let key = Data(base64Encoded: key) else {
            throw PerennialError(.invalid, "The key of order \(id) is not Base64.")
        }
        return HMAC<SHA256>.authenticationCode(for: Data(message.utf8), using: SymmetricKey(data: key)).hexadecimal
    }
}

extension Sequence<UInt8> {
    /// The bytes in lower-case hex.
    var hexadecimal: String { map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined() }
}

private struct StateBody: Encodable {
    let state: String
    let code: String?
    let proof: String
}

private struct StateAnswer: Decodable {
    let state: OrderState
}
