import Subscriptions

/// What an answer took back, as stored in a `jsonb` column.
struct RetractionJSON: Codable {
    var transactionID: String
    var what: String
    var endMilliseconds: Int64?
    var sinceMilliseconds: Int64

    init(_ retraction: Retraction) {
        transactionID = retraction.transactionID.text
        what = retraction.what.rawValue
        endMilliseconds = retraction.end?.milliseconds
        sinceMilliseconds = retraction.since.milliseconds
    }

    /// The retraction; nil where the word is of a later program.
    var retraction: Retraction? {
        Retraction.What(rawValue: what).map {
            Retraction(
                of: TransactionID(transactionID), $0, end: endMilliseconds.map(Instant.init(milliseconds:)),
                since: Instant(milliseconds: sinceMilliseconds))
        }
    }

    enum CodingKeys: String, CodingKey {
        case transactionID = "transaction_id"
        case what
        case endMilliseconds = "end_ms"
        case sinceMilliseconds = "since_ms"
    }
}
