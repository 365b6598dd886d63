import Foundation
import Ledger

extension InputFile {
    /// The number of bytes at each end of a file that distinguish it from others.
    private static let edgeBytes = 1 << 20

    /// Returns the file's identity; nil for standard input, pipes and devices. Leaves the handle at the file's start.
    func identity(_ handle: FileHandle) throws -> ImportedFile? {
        guard let byteCount else { return nil }
        let first = try handle.read(upToCount: Self.edgeBytes) ?? Data()
        try handle.seek(toOffset: UInt64(max(0, byteCount - Self.edgeBytes)))
        let last = try handle.read(upToCount: Self.edgeBytes) ?? Data()
        try handle.seek(toOffset: 0)
        return ImportedFile(
            name: URL(fileURLWithPath: path).lastPathComponent, byteCount: Int64(byteCount), firstBytes: Array(first),
            lastBytes: Array(last))
    }
}
