import AppStore
import Ledger
package import Subscriptions

extension Tracker {
    /// Stores the receipt of a notification as an upload of no customer; a worker asks Apple about it. Returns false
    /// where the text is no receipt.
    package func upload(_ receipt: String, notifiedTo bundleID: BundleID) async throws -> Bool {
        let submission = Submission(bundleID: bundleID, customer: nil, receipt: receipt)
        switch try await store([submission]).first {
        case .success: return true
        case .failure(is ReceiptDataError): return false
        case .failure(let error): throw error
        case nil: return false
        }
    }
}
