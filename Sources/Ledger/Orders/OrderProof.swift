import Crypto
import Foundation
import Postgres
import SQL
package import Subscriptions

/// What a device proves to send about an order, with the order's key: an HMAC-SHA256 in lower-case hex. It shows that
/// the message is about the order, never that the sender owns a receipt.
package struct OrderProof: Sendable, Hashable {
    /// The order's id.
    package let orderID: String
    /// The ASCII texts that may have been authenticated: with the id as it was sent, and in lower case.
    private let messages: [String]
    /// The proof as it was sent.
    let code: String

    /// A proof about a receipt, over `<order id>.<lower-case hex SHA-256 of the decoded receipt>`.
    package init(of orderID: String, receipt: [UInt8], code: String) {
        let digest = SHA256.hash(data: Data(receipt)).map { String(format: "%02x", $0) }.joined()
        self.init(orderID: orderID, about: digest, code: code)
    }

    /// A proof about a state, over `<order id>.<state>.<code, or nothing>`.
    package init(of orderID: String, state: OrderState, stateCode: String?, code: String) {
        self.init(orderID: orderID, about: "\(state.rawValue).\(stateCode ?? "")", code: code)
    }

    private init(orderID: String, about subject: String, code: String) {
        let canonical = LedgerOrders.canonical(orderID) ?? orderID
        (self.orderID, self.code) = (canonical, code)
        messages = ["\(canonical).\(subject)", "\(orderID).\(subject)"]
    }

    /// Whether the proof was made with a key, which is 32 bytes in Base64. It takes the same time for every wrong one.
    package func isMade(with key: String) -> Bool {
        let bytes = Self.bytes(hex: code)
        let rights = messages.map { message in
            HMAC<SHA256>.isValidAuthenticationCode(
                bytes ?? Array(repeating: 0, count: SHA256.byteCount), authenticating: Data(message.utf8),
                using: SymmetricKey(data: Data(base64Encoded: key) ?? Data()))
        }
        return rights.contains(true) && bytes != nil
    }

    private static func bytes(hex: String) -> [UInt8]? {
        let digits = Array(hex.utf8)
        guard digits.count == 2 * SHA256.byteCount, digits.allSatisfy({ Self.isLowerHex($0) }) else { return nil }
        return stride(from: 0, to: digits.count, by: 2).compactMap {
            UInt8(String(decoding: digits[$0...$0 + 1], as: UTF8.self), radix: 16)
        }
    }

    private static func isLowerHex(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
    }
}

extension LedgerOrders {
    /// Returns an order's id in the one spelling that is stored, sealed and counted: a UUID in lower case; nil for another
    /// text.
    package static func canonical(_ id: String) -> String? { UUID(uuidString: id)?.uuidString.lowercased() }

    /// The longest code of a reported state, in bytes.
    package static let codeBytesMax = 255
    /// A key that no order has: a proof of an unknown order takes as long as a wrong one.
    private static let noKey = Data(repeating: 0, count: 32).base64EncodedString()

    /// Whether a proof is of an order that may still be proved: until 90 days after it ended.
    package func accepts(_ proof: OrderProof) async throws -> Bool {
        guard let seal = ledger.seal else { throw LedgerError(.mismatch, "Proofs need PERENNIAL_MASTER_KEY.") }
        let isID = Self.canonical(proof.orderID) != nil
        let id = isID ? proof.orderID : UUID().uuidString
        let row = try await query(Queries.readOrderKey, [.text(id)]).first
        let key = try row.map { try seal.open(try $0.bytea("sealed_key"), for: Self.keyOwner(id)) }
        return proof.isMade(with: key ?? Self.noKey) && key != nil && isID
    }

    /// Records what a device reports of an order: purchasing, deferred, cancelled or failed, with an error code of
    /// StoreKit for example. Returns the state, which a paid or expired order keeps; nil: the proof is refused.
    ///
    /// Throws `invalid` for another state, or a code that is too long or holds a NUL.
    package func report(
        _ state: OrderState, code: String?, of id: String, proof: String
    ) async throws -> OrderState? {
        switch state {
        case .purchasing, .deferred, .cancelled, .failed: break
        case .created, .paid, .delivered, .expired, .refunded:
            throw LedgerError(.invalid, "A device reports purchasing, deferred, cancelled or failed.")
        }
        guard code.map({ $0.utf8.count <= Self.codeBytesMax && !$0.utf8.contains(0) }) ?? true else {
            throw LedgerError(.invalid, "A code has at most \(Self.codeBytesMax) bytes, and no NUL.")
        }
        guard try await accepts(OrderProof(of: id, state: state, stateCode: code, code: proof)) else { return nil }
        let waits = Self.waitsDeferred.milliseconds / Int64(ledger.speedup)
        let row = try await write(
            Queries.reportOrder, [.text(Self.canonical(id)), .text(state.rawValue), .text(code), .int8(waits)]
        ).first
        return try row?.word("state")
    }
}
