import Postgres
import SQL
import Subscriptions

/// The bare id of a transaction, from a notification or from a customer who only points at it, proves no owner. The customers who
/// sent other receipts with the same contents own what it shows first.
extension SettlementRun {
    /// The claims by which an answer's contents get owners: those of its receipt, and for the bare id of a transaction those of
    /// the receipts that share contents with it. They can only get what has no owner, and who only points comes last.
    func claims(of settlement: Settlement) -> [OwnershipClaim] {
        let own = ownershipClaims[settlement.claim.receiptID] ?? []
        guard settlement.claim.form == .transactionID else { return own }
        let beside = batch.filter {
            $0.evidence != nil && $0.claim.form != .transactionID && sharesContents($0, settlement)
        }
        .flatMap { ownershipClaims[$0.claim.receiptID] ?? [] }
        let shared = (sharedClaims[settlement.claim.receiptID] ?? []) + beside.map(\.settled)
        let believed = shared.filter { !$0.isPointer }
        if !believed.isEmpty { return own + believed }
        return own.isEmpty ? shared : own
    }

    /// Reads who sent other receipts that share contents with the bare ids of transactions.
    func sharedClaims(in transaction: Transaction) throws -> [ReceiptID: [OwnershipClaim]] {
        var held: [(receipt: Int64, subscription: Int64)] = []
        var bought: [(receipt: Int64, purchase: Int64)] = []
        for settlement in batch where settlement.evidence != nil && settlement.claim.form == .transactionID {
            let receipt = settlement.claim.receiptID.number
            let contents = contents(of: settlement)
            held += contents.subscriptions.compactMap { key in subscriptions[key].map { (receipt, $0.rowID) } }
            bought += contents.purchases.compactMap { key in purchases[key].map { (receipt, $0.rowID) } }
        }
        guard !held.isEmpty || !bought.isEmpty else { return [:] }
        let rows = try transaction.query(
            Queries.readSharedUploads,
            [
                .int8s(held.map(\.receipt)), .int8s(held.map(\.subscription)), .int8s(bought.map(\.receipt)),
                .int8s(bought.map(\.purchase)),
            ])
        return try rows.reduce(into: [:]) { claims, row in
            claims[ReceiptID(try row.int8("receipt_id")), default: []].append(
                OwnershipClaim(
                    customer: CustomerID(number: try row.int8("customer_id")), name: try row.text("name"),
                    imported: try row.bool("imported"), isNew: false, isPointer: try row.bool("is_pointer")))
        }
    }

    private func sharesContents(_ left: Settlement, _ right: Settlement) -> Bool {
        let (these, those) = (contents(of: left), contents(of: right))
        return !Set(these.subscriptions).isDisjoint(with: those.subscriptions)
            || !Set(these.purchases).isDisjoint(with: those.purchases)
    }
}

extension OwnershipClaim {
    /// The same claim, which can only get what has no owner.
    fileprivate var settled: OwnershipClaim {
        OwnershipClaim(customer: customer, name: name, imported: imported, isNew: false, isPointer: isPointer)
    }
}
