import Foundation

/// The request of a verifyReceipt call, read as leniently as Apple reads it.
struct VerifyRequest: Decodable, Sendable {
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
        // A value of another type counts as missing; only JSON that cannot be read at all is refused.
        receiptData = (try? values.decodeIfPresent(String.self, forKey: .receiptData)) ?? nil
        password = (try? values.decodeIfPresent(String.self, forKey: .password)) ?? nil
        excludesOldTransactions =
            ((try? values.decodeIfPresent(Bool.self, forKey: .excludesOldTransactions)) ?? nil) ?? false
    }
}

/// Apple's status codes, decided in Apple's order: form, signature, environment, secret, account.
enum StatusCheck: Sendable, Equatable {
    case unreadableRequest
    case malformedReceipt(isException: Bool)
    case forgedReceipt
    case wrongSecret
    case sandboxReceiptInProduction
    case productionReceiptInSandbox
    case accountGone
    case genuine(ReceiptIdentity)

    /// Everything but the account, which only the population knows.
    init(_ request: VerifyRequest, at environment: StoreEnvironment, codec: ReceiptCodec, secret: String) {
        guard let text = request.receiptData, !text.isEmpty else {
            self = .malformedReceipt(isException: false)
            return
        }
        switch codec.read(base64: text) {
        case .malformed: self = .malformedReceipt(isException: text.contains { $0.isWhitespace })
        case .forged: self = .forgedReceipt
        case .genuine(let identity):
            switch (identity.environment, environment) {
            case (.sandbox, .production): self = .sandboxReceiptInProduction
            case (.production, .sandbox): self = .productionReceiptInSandbox
            case (.production, .production), (.sandbox, .sandbox):
                self = request.password == secret ? .genuine(identity) : .wrongSecret
            }
        }
    }

    /// The number on the wire.
    var status: Int64 {
        switch self {
        case .unreadableRequest: 21000
        case .malformedReceipt: 21002
        case .forgedReceipt: 21003
        case .wrongSecret: 21004
        case .sandboxReceiptInProduction: 21007
        case .productionReceiptInSandbox: 21008
        case .accountGone: 21010
        case .genuine: 0
        }
    }

    /// The tiny body of an answer without a receipt.
    func errorBody(at environment: StoreEnvironment) -> [UInt8] {
        var json = JSONWriter(reserving: 96)
        json.object { json in
            switch self {
            case .malformedReceipt(isException: true):
                json.number("status", status)
                json.text("exception", "java.lang.IllegalArgumentException")
            case .accountGone:
                json.number("status", status)
                json.boolean("is-retryable", false)
                json.text("environment", environment.rawValue)
            case .unreadableRequest, .malformedReceipt, .forgedReceipt, .wrongSecret, .sandboxReceiptInProduction,
                .productionReceiptInSandbox, .genuine:
                json.number("status", status)
            }
        }
        return json.bytes
    }
}
