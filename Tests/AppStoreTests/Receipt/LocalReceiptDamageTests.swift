import Testing

@testable import AppStore

/// Hostile and torn bytes: an answer always, a crash or a long wait never.
@Suite("Hostile and truncated bytes are refused with a reason") struct LocalReceiptDamageTests {
    typealias Writer = BERWriter

    private func reason(_ bytes: [UInt8]) -> String? {
        switch LocalReading(of: bytes) {
        case .read: nil
        case .unreadable(let reason): reason
        }
    }

    @Test("Every truncation is unreadable")
    func everyTruncationIsUnreadable() {
        let endless = LocalReceiptTests.wrapped.first { $0.0.hasPrefix("indefinite") }?.1 ?? []
        for receipt in [Writer.ordinary, endless] {
            #expect(reason(receipt) == nil)
            for length in 1..<receipt.count {
                #expect(reason(Array(receipt[..<length]))?.contains("PKCS#7") == true, "\(length) bytes")
            }
        }
    }

    @Test("Truncated attributes keep what is whole")
    func truncatedAttributesKeepWhatIsWhole() throws {
        let attributes = Writer.purchase("11", original: "10") + Writer.attribute(2, Writer.text("com.example.app"))
        let whole = Writer.purchase("11", original: "10").count
        for length in 1..<attributes.count {
            let cut = Array(attributes[..<length])
            let reading = LocalReading(of: Writer.receipt(cut))
            #expect((reading.receipt != nil) == (length >= whole), "\(length) bytes")
            #expect(reading.receipt.map { $0.purchases == [LocalReceiptTests.period] } ?? true, "\(length) bytes")
            #expect(reading.receipt.map { $0.unreadableParts == (length > whole ? 1 : 0) } ?? true, "\(length) bytes")
        }
    }

    @Test("An oversized receipt is not looked at")
    func anOversizedReceiptIsNotLookedAt() {
        let long = Writer.ordinary + [UInt8](repeating: 0, count: LocalReceipt.bytesMax - Writer.ordinary.count)
        #expect(reason(long) == nil)
        #expect(reason(long + [0]) == "6291457 bytes, more than 6291456")
    }

    @Test("Purchases beyond the limit are counted")
    func purchasesBeyondTheLimitAreCounted() throws {
        let one = Writer.purchase(Writer.attribute(1705, Writer.text("10")))
        let many = Array(repeating: one, count: LocalReceipt.purchasesMax + 3)
        let receipt = try #require(LocalReading(of: Writer.receipt(Array(many.joined()))).receipt)
        #expect(receipt.purchases.count == LocalReceipt.purchasesMax && receipt.unreadableParts == 3)
    }

    static let bombs: [(String, [UInt8])] = {
        let deep = 500_000
        // A debug build joins a million bytes in seconds and doubles them in no time.
        func nested(_ pair: [UInt8]) -> [UInt8] {
            var bytes = pair
            while bytes.count < 2 * deep { bytes += bytes }
            return Array(bytes.prefix(2 * deep))
        }
        let octets = nested([0x24, 0x80])
        return [
            ("sequences without end", nested([0x30, 0x80])), ("sequences of nothing", nested([0x30, 0x00])),
            ("long tags", [0x30] + [UInt8](repeating: 0x9F, count: deep)),
            ("octet strings without end", octets),
            ("octet strings without end as content", Writer.signedData(octets)),
            ("octet strings that end as content", Writer.signedData(octets + [UInt8](repeating: 0, count: 2 * deep))),
            ("sets in a receipt", Writer.receipt(nested([0x31, 0x80]))),
            ("empty attributes", Writer.receipt(nested([0x30, 0x00]))),
            ("zeros", [0x30, 0x80] + [UInt8](repeating: 0, count: deep)),
            ("ends of contents", Writer.receipt([UInt8](repeating: 0, count: deep))),
            (
                "octet strings in octet strings",
                {
                    var content = Writer.octets([])
                    for _ in 0..<200 { content = Writer.octets(content) }
                    return Writer.signedData(content)
                }()
            ),
        ]
    }()

    @Test("Nesting bombs are defused", arguments: bombs.map(\.0))
    func nestingBombsAreDefused(_ name: String) throws {
        let bomb = try #require(Self.bombs.first { $0.0 == name }).1
        #expect(reason(bomb) != nil)
    }

    @Test("Nesting up to the limit is read")
    func nestingUpToTheLimitIsRead() throws {
        // Sixteen levels, counted from where a walk starts, are allowed; one more is not.
        func nested(_ levels: Int) -> [UInt8] {
            (0..<levels).reduce([]) { inside, _ in Writer.endless(0x30, inside) }
        }
        func reading(_ levels: Int) -> LocalReading {
            LocalReading(of: Writer.receipt(Writer.attribute(2, Writer.text("b")) + nested(levels)))
        }
        #expect(reading(BERCursor.depthMax - 1).receipt?.unreadableParts == 1)
        // What cannot be stepped over ends the walk, so there is one part unreadable either way, but nothing after it
        // is seen.
        let tooDeep = nested(BERCursor.depthMax)
        let after = Writer.attribute(2, Writer.text("b"))
        #expect(LocalReading(of: Writer.receipt(tooDeep + after)).receipt == nil)
        #expect(LocalReading(of: Writer.receipt(nested(BERCursor.depthMax - 1) + after)).receipt?.bundleID == "b")
    }

    @Test(
        "The reason is said",
        arguments: [
            ([], "no bytes at all"), ([0x30], "a PKCS#7 structure that is cut short or damaged"),
            ([0x00], "neither PKCS#7 nor an old property list"),
            (BERWriter.signedData(BERWriter.octets([])), "PKCS#7 signed data without a receipt in it"),
            (BERWriter.signedData(BERWriter.text("x")), "PKCS#7 signed data without a receipt in it"),
            (BERWriter.receipt(), "a receipt without a single attribute"),
        ] as [([UInt8], String)])
    func theReasonIsStated(_ bytes: [UInt8], _ expected: String) {
        #expect(reason(bytes) == expected)
    }
}
