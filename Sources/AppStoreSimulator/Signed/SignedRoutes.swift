import Foundation

/// A customer's newest transaction, signed, as the device of an app without receipts sends it.
package struct SimulatedTransaction: Codable, Sendable {
    /// The bundle id of the app.
    package var app: String
    /// The name, like `c000017`.
    package var customer: String
    package var environment: StoreEnvironment
    package var transactionID: String
    /// The text in compact form.
    package var signedTransaction: String

    enum CodingKeys: String, CodingKey {
        case app, customer, environment
        case transactionID = "transaction_id"
        case signedTransaction = "signed_transaction"
    }
}

extension Simulator {
    /// Returns the transactions that a device of this customer may have, the newest first, signed now: all but finished
    /// consumables. `restore` counts restores, from 0 to 4, each with its own ids. Nil without such a customer.
    package func signedTransactions(of customer: String, restore: Int = 0) throws -> [SimulatedTransaction]? {
        guard let account = account(of: customer) else { return nil }
        let pen = try pen()
        let restore = min(max(restore, 0), SubscriptionIDs.restoresMax)
        return try held(by: account).compactMap { $0.restored(restore, of: account) }.map {
            try signed($0, of: customer, account, by: pen, at: clock.now)
        }
    }

    /// Returns the newest transaction of each customer from position `from` on, at most `count`, in order.
    package func signedTransactions(from: Int = 0, count: Int = .max) throws -> [SimulatedTransaction] {
        let pen = try pen()
        return try accounts(from: from, count: count).compactMap { account in
            try held(by: account).first.map { try signed($0, of: account.name, account, by: pen, at: clock.now) }
        }
    }

    /// Returns the newest transaction of each upload of ``uploads(since:until:)``, signed when the device sent it.
    package func signedUploads(since: Int64 = .min, until: Int64? = nil) throws -> [SimulatedTransaction] {
        let pen = try pen()
        return try uploads(since: since, until: until).compactMap { upload in
            let moment = StoreTime(milliseconds: upload.at)
            guard let account = CustomerName.index(of: upload.customer).flatMap({ world.account($0, asOf: moment) }),
                let newest = held(by: account).first
            else { return nil }
            return try signed(newest, of: upload.customer, account, by: pen, at: moment)
        }
    }

    /// Returns what a device still has, the newest first.
    private func held(by account: Account) -> [SignedTransaction] {
        SignedTransaction.all(of: account, in: world).filter { !($0.kind == .consumable && $0.isFinished) }
            .sorted { ($0.purchase, $0.id) > ($1.purchase, $1.id) }
    }

    /// Signs a transaction for a customer.
    private func signed(
        _ transaction: SignedTransaction, of customer: String, _ account: Account, by pen: SigningPen,
        at moment: StoreTime
    ) throws -> SimulatedTransaction {
        SimulatedTransaction(
            app: pen.bundleID, customer: customer, environment: account.environment, transactionID: transaction.id,
            signedTransaction: try pen.transaction(transaction, at: moment))
    }

    /// Answers the control call that lists the newest transaction of each customer, signed.
    func signedTransactionList(_ query: [URLQueryItem]) throws -> SimulatorReply {
        let part = try part(query, at: now)
        return try list(try signedTransactions(from: part.from, count: part.count), query)
    }

    /// Answers the control call that lists the uploads of devices as signed transactions.
    func signedUploadList(_ query: [URLQueryItem]) throws -> SimulatorReply {
        try list(try signedUploads(since: try query.instant("since") ?? .min, until: try query.instant("until")), query)
    }

    private func list(_ found: [SimulatedTransaction], _ query: [URLQueryItem]) throws -> SimulatorReply {
        guard query.wantsLines else { return try .json(found) }
        return .lines(
            "signed_transaction", found.map { (app: $0.app, customer: $0.customer, text: $0.signedTransaction) })
    }
}
