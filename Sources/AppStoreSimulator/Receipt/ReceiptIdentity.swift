/// The store's data about a receipt it once made.
struct ReceiptIdentity: Sendable, Hashable {
    enum Form: Sendable {
        case unified
        /// The transaction receipt of iOS 6.
        case legacy
    }

    /// The index of the account.
    let customer: Int
    let creation: StoreTime
    let environment: StoreEnvironment
    /// The number of the restore that wrote it, from 1; 0 means none.
    var restore = 0
    var form = Form.unified
    /// Whether another app of the same store wrote it.
    var isForeign = false
}
