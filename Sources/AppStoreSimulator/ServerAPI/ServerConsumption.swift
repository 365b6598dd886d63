import Foundation

/// Send Consumption Information, and Set App Account Token.
extension Simulator {
    private static let deliveries = [
        "DELIVERED", "UNDELIVERED_QUALITY_ISSUE", "UNDELIVERED_WRONG_ITEM", "UNDELIVERED_SERVER_OUTAGE",
        "UNDELIVERED_OTHER",
    ]
    private static let preferences = ["DECLINE", "GRANT_FULL", "GRANT_PRORATED"]

    private struct Consumption: Decodable {
        let customerConsented: Bool?
        let deliveryStatus: String?
        let sampleContentProvided: Bool?
        let consumptionPercentage: Int?
        let refundPreference: String?
    }

    private struct FirstConsumption: Decodable {
        let customerConsented: Bool?
    }

    private struct TokenRequest: Decodable {
        let appAccountToken: String?
    }

    func consume(_ call: ServerCall) throws -> SimulatorReply {
        let id = call.arguments[0]
        let account = try account(named: id, call)
        guard let transaction = SignedTransaction.one(id, of: account, in: world) else {
            throw ServerError.transactionNotFound
        }
        if call.isFirstVersion {
            guard transaction.kind == .consumable else { throw ServerError.notConsumable }
            guard try call.read(FirstConsumption.self).customerConsented == true else {
                throw ServerError.notConsented
            }
        } else {
            try check(try call.read(Consumption.self), of: transaction)
        }
        support.note(
            SupportBook.Consumption(
                transactionID: id, at: clock.now.milliseconds, body: String(decoding: call.body, as: UTF8.self)))
        return SimulatorReply(code: 202, body: [])
    }

    private func check(_ said: Consumption, of transaction: SignedTransaction) throws(ServerError) {
        guard said.customerConsented == true else { throw .notConsented }
        guard let delivery = said.deliveryStatus, Self.deliveries.contains(delivery) else { throw .invalidDelivery }
        guard said.sampleContentProvided != nil else { throw .invalidSample }
        guard said.refundPreference.map(Self.preferences.contains) ?? true else {
            throw .badRequest("Invalid refund preference.")
        }
        guard let percentage = said.consumptionPercentage else { return }
        let isAllowed =
            transaction.kind != .subscription
            && (delivery == "DELIVERED" ? (0...100_000).contains(percentage) : percentage == 0)
        guard isAllowed else { throw .badRequest("Invalid consumption percentage.") }
    }

    func setAccountToken(_ call: ServerCall) throws -> SimulatorReply {
        guard let token = try call.read(TokenRequest.self).appAccountToken.flatMap({ AccountToken($0) }) else {
            throw ServerError.invalidToken
        }
        let id = call.arguments[0]
        let account = try account(named: id, call)
        guard let transaction = SignedTransaction.one(id, of: account, in: world) else {
            throw ServerError.notOriginal
        }
        guard !transaction.isShared else { throw ServerError.familyTransaction }
        guard transaction.originalID == id else { throw ServerError.notOriginal }
        var action = CustomerAction(.setAccountToken)
        action.transactionID = id
        action.accountToken = token
        _ = try world.apply(action, to: account.index, at: now)
        return SimulatorReply(body: [])
    }
}
