/// An odd form that Apple's answers were seen in.
package enum ByteQuirk: String, Codable, Sendable, CaseIterable {
    /// Numbers where rows usually have strings, and strings where the receipt has numbers.
    case swappedTypes = "swapped_types"
    /// The rows of `latest_receipt_info` in no order.
    case unorderedRows = "unordered_rows"
    /// The newest row of `latest_receipt_info` twice.
    case doubledRow = "doubled_row"
    /// Keys that usually are there are not.
    case missingKeys = "missing_keys"
    /// `download_id` is null.
    case nullDownload = "null_download"
}
