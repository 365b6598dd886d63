import Foundation

extension PerennialServer {
    /// Sends an upload and returns what the server says of it, also where Apple does not vouch for it.
    ///
    /// A service needs a key of scope `write`; a device's upload goes without one, by its proof. It may take
    /// ``uploadSeconds``. Sending the same upload again is harmless. It throws where the server gave no such answer:
    /// then the receipt may or may not be stored. An ``UploadQueue`` sends it again until there is an answer.
    public func send(_ upload: Upload) async throws -> UploadAnswer {
        try upload.requireUsable()
        let reply = try await reply(to: try call(for: upload))
        switch reply.status {
        case 200, 202: return try reply.decoded(as: UploadAnswer.self)
        case 422:
            let failure = reply.failure
            guard failure.problem?.kind == .receiptRejected else { throw failure }
            return try reply.decoded(as: UploadAnswer.self)
        default: throw reply.failure
        }
    }

    private func call(for upload: Upload) throws -> Call {
        if let proof = upload.proof, let order = upload.order {
            return Call(
                method: "POST", path: "/v1/orders/\(try Call.part(order))/receipt",
                body: try JSONText.encode(["receipt": upload.subject.text, "proof": proof]),
                seconds: Self.uploadSeconds,
                isKeyed: false)
        }
        let body = UploadBody(
            subject: upload.subject, customer: upload.customer, purpose: upload.purpose.rawValue, order: upload.order,
            forTransactionID: upload.transactionID, storefront: upload.storefront, price: upload.price?.amount,
            currency: upload.price?.currency)
        return Call(
            method: "POST", path: try appPath("receipts"), body: try JSONText.encode(body),
            seconds: Self.uploadSeconds)
    }
}

private struct UploadBody: Encodable {
    let subject: Upload.Subject
    let customer: String?
    let purpose: String
    let order: String?
    let forTransactionID: String?
    let storefront: String?
    let price: String?
    let currency: String?

    enum CodingKeys: String, CodingKey {
        case customer, receipt, purpose, order, storefront, price, currency
        case signedTransaction = "signed_transaction"
        case transactionID = "transaction_id"
        case forTransactionID = "for_transaction_id"
    }

    func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: CodingKeys.self)
        switch subject {
        case .receipt(let text): try values.encode(text, forKey: .receipt)
        case .signedTransaction(let text): try values.encode(text, forKey: .signedTransaction)
        case .transactionID(let id): try values.encode(id, forKey: .transactionID)
        }
        try values.encodeIfPresent(customer, forKey: .customer)
        try values.encode(purpose, forKey: .purpose)
        try values.encodeIfPresent(order, forKey: .order)
        try values.encodeIfPresent(forTransactionID, forKey: .forTransactionID)
        try values.encodeIfPresent(storefront, forKey: .storefront)
        try values.encodeIfPresent(price, forKey: .price)
        try values.encodeIfPresent(currency, forKey: .currency)
    }
}
