import ArgumentParser
import Foundation

/// Imports of receipts that are not stored yet.
struct ImportBenchmark: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import", abstract: "Imports lines with receipts that are not known yet.")

    @Option(help: "Lines of the file.")
    var lines = 500_000

    @Option(help: "Bytes of each receipt, before Base64.")
    var receiptBytes = 3_000

    func run() async throws { try await World.with(measure) }

    private func measure(_ world: World) async throws {
        let file = FileManager.default.temporaryDirectory.appending(path: "perennial-benchmark-import.ndjson")
        try write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        let fresh = try await world.measured {
            try await world.run(["import", file.path])
            return lines
        }
        print(fresh.line("import of \(receiptBytes) byte receipts"))
        let again = try await world.measured {
            try await world.run(["import", file.path])
            return lines
        }
        print(again.line("the same file again"))
    }

    /// Bytes that look like a receipt only at their beginning: nothing in them compresses.
    private func write(to file: URL) throws {
        try Data().write(to: file)
        let handle = try FileHandle(forWritingTo: file)
        var random = SystemRandomNumberGenerator()
        var text = Data()
        for line in 0..<lines {
            var bytes = Data([0x30, 0x82, UInt8((receiptBytes - 4) >> 8), UInt8((receiptBytes - 4) & 0xFF)])
            while bytes.count < receiptBytes { withUnsafeBytes(of: random.next()) { bytes.append(contentsOf: $0) } }
            let receipt = bytes.prefix(receiptBytes).base64EncodedString()
            text += Data(#"{"app":"\#(World.app)","customer":"c\#(line)","receipt":"\#(receipt)"}"#.utf8) + [10]
            if text.count > 1 << 22 {
                try handle.write(contentsOf: text)
                text.removeAll(keepingCapacity: true)
            }
        }
        try handle.write(contentsOf: text)
        try handle.close()
    }
}
