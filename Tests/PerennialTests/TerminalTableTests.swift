import Foundation
import JSON
import Server
import Subscriptions
import Testing
import TestSupport
import Tracking

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

    @Test func `what is kept of a customer fits the terminal too`() async throws {
        try await withMigratedDatabase { database, _ in
            let ledger = SubscriptionLedger(database: database, seal: try SecretSeal(masterKey: Array(0..<32)))
            try await ledger.apps.add("com.example.app", callsPerSecond: 0)
            for entitlement in ["pro", "team"] {
                let reason = "a reason with \u{1B}[2J and a second line\nthat no terminal of eighty columns can show"
                _ = try await ledger.customers.grant(
                    entitlement, to: "kim", of: "com.example.app", until: nil,
                    deciding: try ManualDecision(by: "support", because: reason))
            }
            let file = try await ledger.customers.export("kim", of: "com.example.app")
            let lines = file.text(in: Self.plain80).split(separator: "\n")
            #expect(lines.allSatisfy { String($0).cells <= 80 }, "\(lines)")
            #expect(lines.contains { $0.hasPrefix("team ") && $0.contains("…") })
            let whole = file.text().split(separator: "\n")
            #expect(whole.contains { $0.hasPrefix("team ") && $0.contains("eighty columns") })
            #expect(!file.text().contains("\u{1B}"))
        }
    }

    @Test(arguments: [
        ("abcdefghij", 10, "abcdefghij"), ("abcdefghijk", 10, "abcd…ghijk"), ("abc", 2, "…c"), ("abc", 1, "a"),
    ])
    func `a shortened text keeps both ends`(text: String, width: Int, shortened: String) {
        #expect(text.shortened(to: width) == shortened)
    }
}

@Suite("A width counts the cells of a terminal") struct CellTests {
    @Test(arguments: [
        ("", 0), ("abc", 3), ("é", 1), ("e\u{301}", 1), ("Zoë", 3), ("日本", 4), ("한국", 4),
        ("\u{1112}\u{1161}\u{11AB}", 2),
        ("ｱ", 1), ("Ａ", 2), ("、", 2), ("𠮷", 2), ("😀", 2), ("👩‍👩‍👧", 2), ("👍🏽", 2), ("🇩🇪", 2), ("❤\u{FE0F}", 2),
        ("❤", 1), ("1\u{FE0F}\u{20E3}", 2), ("1", 1), ("©", 1), ("🏳️‍🌈", 2), ("a\u{200B}b", 2), ("a\u{AD}b", 3),
        ("שָׁלוֹם", 4), ("ไทย", 3), ("…", 1), ("→", 1),
    ])
    func width(text: String, cells: Int) {
        #expect(text.cells == cells)
    }

    @Test func `columns stand below each other whatever the script`() {
        let names = ["日本語のお客様", "plain", "e\u{301}te\u{301}", "👩‍👩‍👧 family"]
        let listing = Listing(columns: ["name", "n"], rows: names.map { [.string($0), 7] })
        let lines = listing.table.split(separator: "\n")
        #expect(lines.count == 5)
        for line in lines { #expect(String(line).cells == "日本語のお客様".cells + 3, "\(line)") }
    }

    @Test(arguments: [
        ("日本語のお客様", 14, "日本語のお客様"), ("日本語のお客様", 13, "日本語…お客様"),
        ("日本語のお客様", 8, "日…客様"), ("日本語", 1, ""), ("aa日本", 4, "a…本"), ("👩‍👩‍👧👩‍👩‍👧👩‍👩‍👧", 5, "👩‍👩‍👧…👩‍👩‍👧"),
    ])
    func `a shortened text keeps whole characters within its cells`(text: String, width: Int, shortened: String) {
        #expect(text.shortened(to: width) == shortened)
        #expect(shortened.cells <= width)
    }

    @Test func `a shortened table is as wide as the terminal at most`() {
        let id = String(repeating: "客", count: 40)
        let listing = Listing(columns: ["customer", "state"], rows: [[.string(id), "active"], [.string(id), "a"]])
        let lines = listing.table(in: TerminalStyle(width: 30, hasColour: false)).split(separator: "\n")
        #expect(lines.count == 3 && lines.allSatisfy { String($0).cells <= 30 }, "\(lines)")
    }
}
