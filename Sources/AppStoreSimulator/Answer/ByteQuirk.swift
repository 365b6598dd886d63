/// An odd form observed in Apple's responses.
package enum ByteQuirk: String, Codable, Sendable, CaseIterable {
    /// Numbers where rows usually have strings, and strings where the receipt has numbers.
    case swappedTypes = "swapped_types"
    /// The rows of `latest_receipt_info` in no order.
    case unorderedRows = "unordered_rows"
    /// The newest row of `latest_receipt_info` twice.
    case doubledRow = "doubled_row"
    /// Some keys that are usually present are missing.
    case missingKeys = "missing_keys"
    /// `download_id` is null.
    case nullDownload = "null_download"
}
