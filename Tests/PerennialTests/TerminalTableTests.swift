import Foundation
import JSON
import Server
import Testing
import TestSupport

@testable import perennial

@Suite("A table fits the terminal, and everything else gets it whole") struct TerminalTableTests {
    private static let plain80 = TerminalStyle(width: 80, hasColour: false)
    private static let wide = Listing(
        columns: ["bundle_id", "product_id", "state", "subscriptions", "expires_at"],
        rows: [
            [
                "com.example.application.tracker", "com.example.application.tracker.monthly", "active", 12_345,
                "2026-11-24T10:00:00.000Z",
            ],
            ["com.example.b", "com.example.application.tracker.yearly", "awaiting_renewal", 7, nil],
        ])

    @Test(arguments: [80, 120]) func `no line is longer than the terminal is wide`(width: Int) {
        let text = Self.wide.table(in: TerminalStyle(width: width, hasColour: false))
        let lines = text.split(separator: "\n")
        #expect(lines.count == 3)
        #expect(lines.allSatisfy { $0.count <= width }, "\(text)")
        #expect(text.contains("12345") && text.contains("SUBSCRIPTIONS"), "numbers and headings stay whole")
        #expect(text.contains("…"))
    }

    @Test func `what fits is shown whole, in the same form as elsewhere`() {
        #expect(Self.wide.table(in: TerminalStyle(width: 200, hasColour: false)) == Self.wide.table)
        #expect(!Self.wide.table.contains("…") && Self.wide.table.split(separator: "\n")[1].count > 120)
    }

    @Test func `one row is shown vertically and whole`() {
        let one = Listing(columns: ["name", "long_name"], rows: [["a\u{1B}[2J", "b"]])
        #expect(one.table(in: Self.plain80) == "NAME       a\\u{1b}[2J\nLONG_NAME  b")
        #expect(one.table == "NAME        LONG_NAME\na\\u{1b}[2J  b")
    }

    @Test func `rows of too many columns are shown one below the other`() {
        let columns = (0..<12).map { "column_\($0)" }
        let many = Listing(columns: columns, rows: [columns.map { .string($0) }, columns.map { .string($0) }])
        let blocks = many.table(in: Self.plain80).components(separatedBy: "\n\n")
        #expect(blocks.count == 2)
        #expect(blocks[0].split(separator: "\n").count == 12)
        #expect(blocks[0].hasPrefix("COLUMN_0   column_0\n"))
    }

    @Test func `colours are headings in bold, and only where they are wanted`() {
        let coloured = Self.wide.table(in: TerminalStyle(width: 80, hasColour: true))
        #expect(coloured.hasPrefix("\u{1B}[1mBUNDLE_ID"))
        #expect(coloured.components(separatedBy: "\u{1B}[").count == 3)
        #expect(!Self.wide.table(in: Self.plain80).contains("\u{1B}"))
    }

    @Test(arguments: [
        ("abcdefghij", 10, "abcdefghij"), ("abcdefghijk", 10, "abcd…ghijk"), ("abc", 2, "…c"), ("abc", 1, "a"),
    ])
    func `a shortened text keeps both ends`(text: String, width: Int, shortened: String) {
        #expect(text.shortened(to: width) == shortened)
    }
}
