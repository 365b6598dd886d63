import Foundation

/// The request body of a verifyReceipt call, read as leniently as Apple reads it.
struct VerifyRequest: Sendable {
    /// The receipt as text; nil when it is missing or not a string.
    private(set) var receiptData: [UInt8]?
    private(set) var password: [UInt8]?
    private(set) var excludesOldTransactions = false

    /// Reads a body; nil when it is not a JSON object.
    init?(_ body: [UInt8]) {
        if let members = FlatJSON.members(of: body) {
            for member in members { take(member) }
            return
        }
        guard let written = try? JSONDecoder().decode(Written.self, from: Data(body)) else { return nil }
        receiptData = written.receiptData.map { Array($0.utf8) }
        password = written.password.map { Array($0.utf8) }
        excludesOldTransactions = written.excludesOldTransactions
    }

    private mutating func take(_ member: FlatJSON.Member) {
        switch (member.key, member.value) {
        case ("receipt-data", .text(let text)): receiptData = text
        case ("password", .text(let text)): password = text
        case ("exclude-old-transactions", .boolean(let isWanted)): excludesOldTransactions = isWanted
        case (_, .text), (_, .boolean): break
        }
    }

    /// The same fields, for bodies with escapes, numbers or anything else unusual.
    private struct Written: Decodable {
        let receiptData: String?
        let password: String?
        let excludesOldTransactions: Bool

        enum CodingKeys: String, CodingKey {
            case receiptData = "receipt-data"
            case password
            case excludesOldTransactions = "exclude-old-transactions"
        }

        init(from decoder: any Decoder) throws {
            let values = try decoder.container(keyedBy: CodingKeys.self)
            // A value of another type counts as missing; only unreadable JSON is refused.
            receiptData = (try? values.decodeIfPresent(String.self, forKey: .receiptData)) ?? nil
            password = (try? values.decodeIfPresent(String.self, forKey: .password)) ?? nil
            excludesOldTransactions =
                ((try? values.decodeIfPresent(Bool.self, forKey: .excludesOldTransactions)) ?? nil) ?? false
        }
    }
}
