import Foundation
import TestSupport
import Testing

/// A text as `pg_dump` writes its bytes.
func hex(_ text: String) -> String {
    text.utf8.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
}

extension TestLedger {
    /// Everything that the database holds, as a backup would.
    func dumped() async throws -> String {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["pg_dump", "--data-only", "--dbname", connectionString]
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        let text = await output.fileHandleForReading.textToEnd()
        try #require(await process.ended() == 0, "pg_dump failed")
        return text
    }
}
