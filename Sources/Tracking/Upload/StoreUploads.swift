import Postgres
import SQL
package import Subscriptions

extension LedgerIntake {
    /// Stores uploads, all or none, and returns the results in their order; a receipt is stored once however often it
    /// is uploaded. With `part`, the same transaction records the progress of a file's import. With `newReceiptsMax`, a
    /// customer who uploaded more new receipts within the last hour is refused with `exhausted`.
    package func store(
        _ uploads: [Upload], completing part: ImportedPart? = nil, newReceiptsMax: Int? = nil
    ) async throws -> [StoredUpload] {
        for customer in uploads.compactMap(\.customer) { try Upload.requireValidCustomerID(customer) }
        guard !uploads.isEmpty || part != nil else { return [] }
        let batch = UploadBatch(uploads)
        return try await ledger.changingPollers(orCustomers: true) { transaction in
            let stored = try batch.store(newReceiptsMax: newReceiptsMax, in: transaction)
            try audit(batch, stored, in: transaction)
            // Last, because concurrent imports of one file wait for each other here.
            try part?.mark(in: transaction)
            return stored
        }
    }

    /// Records stored receipts in the audit log; an import is recorded as a whole, not by its receipts.
    private func audit(_ batch: UploadBatch, _ stored: [StoredUpload], in transaction: Transaction) throws {
        let brought = zip(batch.uploads, stored).filter { !$0.0.imported }
        guard let actor = ledger.actor, !brought.isEmpty else { return }
        try transaction.query(
            Queries.auditUploads,
            .int4(actor.key), .text(actor.user), .text(AuditedAction.receiptStored.rawValue),
            .int4s(brought.map(\.0.appID)), .texts(brought.map(\.0.customer)),
            .int8s(brought.map(\.1.receiptID.number)))
    }

    /// Counts receipts for `app` that were refused because they name another one, by that. Keeps the most frequent.
    package func countRefused(_ named: [BundleID: Int], of app: App) async throws {
        // A new name counts on from the rarest, so that what is sent often stays whatever else is sent.
        let most = named.sorted { ($1.value, $0.key.text) < ($0.value, $1.key.text) }
            .prefix(Int(LedgerStatus.bundlesKept))
        _ = try await write(
            Queries.countRefusedBundles,
            .int4(app.id), .texts(most.map(\.key.text)), .int8s(most.map { Int64($0.value) }),
            .int4(LedgerStatus.bundlesKept))
    }
}

extension UploadBatch {
    /// Stores the uploads. Writers do not deadlock: schedules are locked first, and each step locks rows in one order.
    func store(newReceiptsMax: Int?, in transaction: Transaction) throws -> [StoredUpload] {
        guard !uploads.isEmpty else { return [] }
        let (receiptIDs, new) = try storeReceipts(in: transaction)
        let customerIDs = try storeCustomers(in: transaction)
        let ids = try receiptKeys.map { try Self.required(receiptIDs[$0]) }
        let people = try customerKeys.map { try $0.map { try Self.required(customerIDs[$0]) } }
        let customers = people.map(\.?.id)
        try transaction.query(
            Queries.storeUploads,
            .int8s(ids), .int8s(customers), .bools(uploads.map(\.imported)), .texts(uploads.map(\.storefront)),
            .int8s(uploads.map(\.priceMilliunits)), .texts(uploads.map(\.currency)),
            .instants(uploads.map { $0.expiresAt.map(Self.storable) }), .bools(uploads.map(\.saysSandbox)))
        try storeProvisionals(of: ids, customers, in: transaction)
        try storeOrders(of: ids, new: new, in: transaction)
        if let newReceiptsMax {
            let bringers = zip(ids, customers).compactMap { id, customer in new.contains(id) ? customer : nil }
            for customer in Set(bringers).sorted() {
                try transaction.query(Queries.lockUploader, .int8(customer))
                try Self.refuseFlood([.int8(customer), .text(nil)], newReceiptsMax, in: transaction)
            }
            let orders = zip(ids, uploads).compactMap { id, upload in new.contains(id) ? upload.order : nil }
            for order in Set(orders.filter(\.isProved).map(\.id)).sorted() {
                try transaction.query(Queries.lockBuyerOfOrder, .text(order))
                try Self.refuseFlood([.int8(nil), .text(order)], newReceiptsMax, in: transaction)
            }
        }
        var newReceipts = new
        return zip(ids, people).map { id, person in
            StoredUpload(receiptID: ReceiptID(id), isNew: newReceipts.remove(id) != nil, customer: person?.called)
        }
    }

    /// Throws `exhausted` when a customer uploaded, or devices sent for the customer's orders, more new receipts in an
    /// hour than allowed, counting those of this transaction. The count is exact, because the customer is locked.
    private static func refuseFlood(
        _ uploader: [Parameter], _ newReceiptsMax: Int, in transaction: Transaction
    ) throws {
        guard let row = try transaction.query(Queries.countUploaded, uploader).first,
            try row.int8("receipts") > newReceiptsMax
        else { return }
        throw LedgerError(
            .exhausted(retryAfterSeconds: Int(try row.int8("seconds_left"))),
            "A customer may upload \(newReceiptsMax) new receipts an hour, and one more for each order. Receipts that are known are still accepted."
        )
    }

    /// Returns the keys of all receipts and of the new ones; locks the known ones with their schedules.
    private func storeReceipts(in transaction: Transaction) throws -> (ids: [Key: Int64], new: Set<Int64>) {
        let fresh = try transaction.query(
            Queries.insertReceipts,
            .int4s(receipts.map(\.key.appID)), .byteas(receipts.map(\.key.bytes)),
            .byteas(receipts.map { uploads[$0.place].receipt }),
            .texts(receipts.map { uploads[$0.place].form.rawValue }),
            .texts(receipts.map { uploads[$0.place].transactionID?.text }))
        var ids: [Key: Int64] = [:]
        ids.reserveCapacity(receipts.count)
        for row in fresh { ids[try Key(receipt: row)] = try row.int8("receipt_id") }
        let new = Set(ids.values)
        let known = receipts.map(\.key).filter { ids[$0] == nil }
        guard !known.isEmpty else { return (ids, new) }
        let found = try transaction.query(Queries.findDigests, .int4s(known.map(\.appID)), .byteas(known.map(\.bytes)))
        for row in found { ids[try Key(receipt: row)] = try row.int8("receipt_id") }
        let old = Parameter.int8s(try found.map { try $0.int8("receipt_id") })
        try transaction.query(Queries.lockSchedules, old)
        guard try transaction.query(Queries.keepReceipts, old).count == found.count else {
            throw LedgerError.erasedMeanwhile
        }
        return (ids, new)
    }

    /// Returns the customers; for a name merged into another customer, that customer.
    private func storeCustomers(in transaction: Transaction) throws -> [Key: (id: Int64, called: String)] {
        let fresh = try transaction.query(
            Queries.insertCustomers,
            .int4s(customers.map(\.key.appID)), .texts(customers.map { uploads[$0.place].customer }))
        var people: [Key: (id: Int64, called: String)] = [:]
        people.reserveCapacity(customers.count)
        for row in fresh { people[try Key(customer: row)] = (try row.int8("customer_id"), try row.text("name")) }
        let known = customers.filter { people[$0.key] == nil }
        guard !known.isEmpty else { return people }
        let found = try transaction.query(
            Queries.findCustomers,
            .int4s(known.map(\.key.appID)), .texts(known.map { uploads[$0.place].customer }))
        for row in found { people[try Key(customer: row)] = (try row.int8("customer_id"), try row.text("called")) }
        return people
    }

    /// Records for which orders receipts were sent. Throws `busy` where a customer was erased meanwhile.
    private func storeOrders(of ids: [Int64], new: Set<Int64>, in transaction: Transaction) throws {
        let sent = zip(ids, uploads).compactMap { id, upload in upload.order.map { (receipt: id, order: $0) } }
        guard !sent.isEmpty else { return }
        let stored = try transaction.query(
            Queries.storeOrderReceipts,
            .int8s(sent.map(\.receipt)), .texts(sent.map(\.order.id)), .bools(sent.map(\.order.isProved)),
            .bools(sent.map { new.contains($0.receipt) }), .texts(sent.map(\.order.transactionID?.text)))
        guard Set(try stored.map { try $0.text("order_id") }) == Set(sent.map(\.order.id)) else {
            throw LedgerError(.busy, "The order changes at this moment; send the receipt again.")
        }
    }

    private func storeProvisionals(of ids: [Int64], _ customers: [Int64?], in transaction: Transaction) throws {
        let said = uploads.indices.compactMap { place in uploads[place].provisional.map { (place: place, word: $0) } }
        guard !said.isEmpty else { return }
        let promised = try transaction.query(
            Queries.storeProvisionals,
            .int8s(said.map { ids[$0.place] }), .int8s(said.map { customers[$0.place] }),
            .texts(said.map(\.word.productID.text)), .instants(said.map(\.word.until)),
            .texts(said.map(\.word.environment.rawValue))
        ).map { CustomerID(number: try $0.int8("customer_id")) }
        try AffectedCustomers(locking: Set(promised), in: transaction).outdate(in: transaction)
    }

    /// Limits a date of a device to what PostgreSQL can store; dates further away do not change the order.
    private static func storable(_ instant: Instant) -> Instant {
        min(max(instant, Instant(milliseconds: 0)), Instant(milliseconds: 253_402_300_799_999))
    }

    /// What was known when the rows were inserted is there, except after an erasure between the two statements.
    private static func required<Stored>(_ stored: Stored?) throws -> Stored {
        guard let stored else { throw LedgerError.erasedMeanwhile }
        return stored
    }
}

extension UploadBatch.Key {
    fileprivate init(receipt row: Row) throws {
        self.init(appID: try row.int4("app_id"), bytes: try row.bytea("digest"))
    }

    fileprivate init(customer row: Row) throws {
        self.init(appID: try row.int4("app_id"), bytes: Array(try row.text("name").utf8))
    }
}
