import Foundation
import TestSupport
import Testing

/// The real program on a real terminal: a pseudoterminal of 80 columns.
@Suite("The program looks at its terminal") struct TerminalProcessTests {
    /// Runs the program with standard output on a terminal, and returns what it showed and its status.
    private func run(_ arguments: [String], _ environment: [String: String] = [:]) async throws -> (String, Int32) {
        var (main, other): (Int32, Int32) = (-1, -1)
        var size = winsize(ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0)
        try #require(openpty(&main, &other, nil, nil, &size) == 0)
        let process = Process()
        process.executableURL = PretendWorld.productsFolder.appendingPathComponent("perennial")
        process.arguments = arguments
        var inherited = ProcessInfo.processInfo.environment.filter { $0.key != "NO_COLOR" }
        inherited["TERM"] = "xterm"
        process.environment = inherited.merging(environment) { $1 }
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = FileHandle(fileDescriptor: other, closeOnDealloc: false)
        process.standardError = FileHandle.nullDevice
        try process.run()
        close(other)
        // A terminal whose other side is closed ends with an error, not with the end of the file.
        let terminal = main
        let bytes = await onAThread {
            var bytes: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 4_096)
            while true {
                let count = read(terminal, &buffer, buffer.count)
                guard count > 0 else { return bytes }
                bytes += buffer[..<count]
            }
        }
        close(terminal)
        return (String(decoding: bytes, as: UTF8.self).replacing("\r\n", with: "\n"), await process.ended())
    }

    @Test func `a table is cut to the terminal, with headings in bold unless NO_COLOR is set`() async throws {
        let (coloured, status) = try await run(["report", "list"])
        #expect(status == 0)
        #expect(coloured.hasPrefix("\u{1B}[1mNAME"))
        let (plain, _) = try await run(["report", "list"], ["NO_COLOR": "1"])
        #expect(plain.hasPrefix("NAME") && !plain.contains("\u{1B}"))
        let lines = plain.split(separator: "\n")
        #expect(lines.count > 20 && lines.allSatisfy { $0.count <= 80 } && plain.contains("…"))
    }
}
