import Subscriptions
import Testing

@testable import AppStore

@Suite("Each oddity of a receipt is read as it is meant") struct LocalReceiptTests {
    typealias Writer = BERWriter

    private func read(_ bytes: [UInt8]) throws -> LocalReceipt { try #require(LocalReading(of: bytes).receipt) }

    private func instant(_ date: [UInt8]) throws -> Int64? {
        try read(Writer.receipt(Writer.attribute(12, date))).createdAt
    }

    static let period = LocalPurchase(
        productID: "monthly", transactionID: "11", originalTransactionID: "10", webOrderLineItemID: "503000000000009",
        expiresAt: 1_769_904_000_000, cancelledAt: nil)

    @Test("An ordinary receipt says what is in it")
    func anOrdinaryReceiptSaysWhatIsInIt() throws {
        let receipt = try read(Writer.ordinary)
        #expect(ReceiptForm(sniffing: Writer.ordinary) == .unified && receipt.form == .unified)
        #expect(receipt.bundleID == "com.example.app" && receipt.environment == "ProductionSandbox")
        #expect(receipt.createdAt == 1_767_323_045_000 && receipt.unreadableParts == 0)
        #expect(receipt.purchases.count == 2 && receipt.purchases.first == Self.period)
        #expect(receipt.originalTransactionIDs == ["10"] && receipt.transactionIDs == ["10", "11"])
        #expect(receipt.latestExpiry == 1_769_904_000_000 && receipt.store == .sandbox)
    }

    @Test("A receipt is certainly another app's only where one attribute names an app and every part can be read")
    func otherApp() throws {
        let receipt = try read(Writer.ordinary)
        #expect(receipt.otherApp(than: "com.example.other") == "com.example.app")
        #expect(receipt.otherApp(than: "com.example.ap") == "com.example.app")
        #expect(receipt.otherApp(than: "com.example.app") == nil)
        let named = Writer.attribute(2, Writer.text("com.example.other"))
        #expect(try read(Writer.receipt(named)).otherApp(than: "x") == "com.example.other")
        for doubtful in [
            Writer.attribute(3, Writer.text("1")),
            named + Writer.attribute(2, Writer.text("x")), Writer.attribute(2, Writer.text("x")) + named,
            named + Writer.attribute(2, [0x01, 0x01, 0xFF]), Writer.attribute(2, [0x01, 0x01, 0xFF]) + named,
            named + [0x30, 0x03, 0x02, 0x01, 0x02], named + Writer.attribute(17, [0x04, 0x00]),
        ] {
            #expect(try read(Writer.receipt(doubtful)).otherApp(than: "x") == nil, "\(doubtful)")
        }
    }

    @Test(
        "The store is known by its name",
        arguments: [
            ("Production", .production), ("ProductionVPP", .production), ("ProductionSandbox", .sandbox),
            ("ProductionVPPSandbox", .sandbox), ("Sandbox", .sandbox), ("Xcode", nil), ("production", nil),
        ] as [(String, StoreEnvironment?)])
    func theStoreIsKnownByItsName(_ environment: String, _ store: StoreEnvironment?) throws {
        let receipt = try read(Writer.receipt(Writer.attribute(0, Writer.text(environment))))
        #expect(receipt.environment == environment && receipt.store == store)
    }

    /// The attributes of `ordinary`, as the octet string that holds them.
    static let attributes = Writer.element(
        0x31, Writer.attribute(2, Writer.text("com.example.app")), Writer.purchase("11", original: "10"))

    static let wrapped: [(String, [UInt8])] = [
        (
            "indefinite lengths all the way",
            {
                let info = Writer.endless(
                    0x30, Writer.element(0x06, Writer.data),
                    Writer.endless(0xA0, Writer.endless(0x24, Writer.octets(attributes))))
                let data = Writer.endless(0x30, Writer.integer(1), Writer.element(0x31), info, Writer.endless(0x31))
                return Writer.endless(0x30, Writer.element(0x06, Writer.signed), Writer.endless(0xA0, data))
            }()
        ),
        (
            "parts of seven bytes",
            Writer.signedData(
                Writer.element(
                    0x24,
                    stride(from: 0, to: attributes.count, by: 7).map {
                        Writer.octets(Array(attributes.dropFirst($0).prefix(7)))
                    }))
        ),
        (
            "parts of parts",
            Writer.signedData(
                Writer.element(
                    0x24, Writer.element(0x24, Writer.octets(Array(attributes.prefix(30)))),
                    Writer.endless(0x24, Writer.octets(Array(attributes.dropFirst(30))))))
        ),
        ("an empty part", Writer.signedData(Writer.element(0x24, Writer.octets([]), Writer.octets(attributes)))),
        ("an octet string in an octet string", Writer.signedData(Writer.octets(Writer.octets(attributes)))),
        (
            "a sequence of digests",
            Writer.element(
                0x30, Writer.element(0x06, Writer.signed),
                Writer.element(
                    0xA0,
                    Writer.element(
                        0x30, Writer.integer(1),
                        Writer.element(0x30, Writer.element(0x30, Writer.element(0x06, Writer.sha256))),
                        Writer.element(
                            0x30, Writer.element(0x06, Writer.data), Writer.element(0xA0, Writer.octets(attributes))))))
        ),
        ("a sequence for a set", Writer.signedData(Writer.octets([0x30] + attributes.dropFirst()))),
        ("something after the end", Writer.signedData(Writer.octets(attributes)) + [0xFF, 0x00]),
        (
            "a set of indefinite length",
            Writer.signedData(
                Writer.octets(
                    [0x31, 0x80] + Writer.attribute(2, Writer.text("com.example.app"))
                        + Writer.purchase("11", original: "10") + [0, 0]))
        ),
        (
            "a value in parts",
            Writer.receipt(
                Writer.element(
                    0x30, Writer.integer(2), Writer.integer(1),
                    Writer.element(0x24, Writer.octets([0x0C, 15]), Writer.octets(Array("com.example.app".utf8)))),
                Writer.purchase("11", original: "10"))
        ),
        (
            "a length of five bytes",
            Writer.receipt(
                Writer.attribute(2, Writer.text("com.example.app")),
                Writer.element(
                    0x30, Writer.integer(17), Writer.integer(1),
                    {
                        let purchase = Writer.purchase("11", original: "10")
                        let value = Array(purchase.dropFirst(purchase.firstIndex(of: 0x31) ?? 0))
                        return [0x04, 0x85, 0, 0, 0, 0, UInt8(value.count)] + value
                    }()))
        ),
    ]

    @Test("Every wrapping is taken off", arguments: wrapped.map(\.0))
    func everyWrappingIsTakenOff(_ name: String) throws {
        let bytes = try #require(Self.wrapped.first { $0.0 == name }).1
        let receipt = try read(bytes)
        #expect(receipt.bundleID == "com.example.app" && receipt.purchases == [Self.period])
        #expect(receipt.unreadableParts == 0)
    }

    @Test("Empty values are absent")
    func emptyValuesAreAbsent() throws {
        let types = [0, 2, 12]
        for empty in [[], Writer.text(""), Writer.date(""), [0x05, 0x00]] {
            let receipt = try read(
                Writer.signedData(
                    Writer.octets(
                        Writer.element(
                            0x31,
                            types.map { Writer.attribute($0, empty) } + [
                                Writer.purchase(
                                    Writer.attribute(1702, empty), Writer.attribute(1703, empty),
                                    Writer.attribute(1705, Writer.text("10")), Writer.attribute(1708, empty),
                                    Writer.attribute(1711, empty), Writer.attribute(1712, empty))
                            ]))))
            #expect(receipt.bundleID == nil && receipt.environment == nil && receipt.createdAt == nil)
            let purchase = LocalPurchase(
                productID: nil, transactionID: nil, originalTransactionID: "10", webOrderLineItemID: nil,
                expiresAt: nil, cancelledAt: nil)
            #expect(receipt.purchases == [purchase] && receipt.unreadableParts == 0)
        }
    }

    static let broken: [(String, [UInt8])] = [
        ("no sequence", Writer.octets([1, 2, 3])), ("nothing in it", Writer.element(0x30)),
        ("only a type", Writer.element(0x30, Writer.integer(2))),
        ("no value", Writer.element(0x30, Writer.integer(2), Writer.integer(1))),
        ("a type that is a text", Writer.element(0x30, Writer.text("2"), Writer.integer(1), Writer.octets([]))),
        (
            "a type of nine bytes",
            Writer.element(0x30, Writer.element(0x02, [UInt8](repeating: 1, count: 9)), Writer.octets([]))
        ),
        (
            "a value whose parts are none",
            Writer.element(0x30, Writer.integer(2), Writer.element(0x24, Writer.integer(1)))
        ),
        ("a purchase that is no set", Writer.attribute(17, Writer.text("x"))),
        ("a purchase without any id", Writer.purchase(Writer.attribute(1702, Writer.text("monthly")))),
        ("a purchase of nothing", Writer.purchase()),
        ("a long tag", [0x3F, 0x81, 0x01, 0x02, 0x05, 0x00]),
    ]

    @Test("One broken attribute loses no other", arguments: broken.map(\.0))
    func oneBrokenAttributeLosesNoOther(_ name: String) throws {
        let bad = try #require(Self.broken.first { $0.0 == name }).1
        let receipt = try read(
            Writer.receipt(
                bad, Writer.attribute(2, Writer.text("com.example.app")), bad, Writer.purchase("11", original: "10")))
        #expect(receipt.bundleID == "com.example.app" && receipt.purchases == [Self.period])
        #expect(receipt.unreadableParts == 2)
    }

    @Test("Unknown types are passed over")
    func unknownTypesArePassedOver() throws {
        let receipt = try read(
            Writer.receipt(
                Writer.attribute(9999, Writer.text("new")), Writer.attribute(2, Writer.text("b")),
                Writer.element(0x30, [0x02, 1, 0xFF], Writer.integer(1), Writer.octets([1])),
                Writer.purchase(
                    Writer.attribute(1705, Writer.text("10")), Writer.attribute(1799, Writer.element(0x30)))))
        #expect(receipt.bundleID == "b" && receipt.originalTransactionIDs == ["10"] && receipt.unreadableParts == 0)
    }

    @Test("A lying length keeps what stood before")
    func aLyingLengthKeepsWhatStoodBefore() throws {
        let lie: [UInt8] = [0x30, 0x84, 0x7F, 0xFF, 0xFF, 0xFF, 0x02]
        let receipt = try read(Writer.receipt(Writer.purchase("11", original: "10"), lie))
        #expect(receipt.purchases == [Self.period] && receipt.unreadableParts == 1)
        let longest: [UInt8] = [0x30, 0xFF] + [UInt8](repeating: 0xFF, count: 127)
        #expect(try read(Writer.receipt(Writer.attribute(2, Writer.text("b")), longest)).bundleID == "b")
    }

    @Test("Ids may be numbers and nought is none")
    func idsMayBeNumbersAndNoughtIsNone() throws {
        let receipt = try read(
            Writer.receipt(
                Writer.purchase(
                    Writer.attribute(1703, Writer.integer(503_000_000_000_123)),
                    Writer.attribute(1711, Writer.integer(0))),
                Writer.purchase(
                    Writer.attribute(1703, Writer.text("0")), Writer.attribute(1711, Writer.text("77"))),
                Writer.purchase(Writer.attribute(1703, Writer.text("a\nb"))),
                Writer.purchase(Writer.attribute(1703, Writer.element(0x0C, [0xFF, 0xFE])))))
        #expect(receipt.purchases.map(\.originalTransactionID) == ["503000000000123", "0"])
        #expect(receipt.purchases.map(\.webOrderLineItemID) == [nil, "77"] && receipt.unreadableParts == 2)
    }

    @Test("The last of two counts")
    func theLastOfTwoCounts() throws {
        let receipt = try read(
            Writer.receipt(
                Writer.attribute(2, Writer.text("first")), Writer.attribute(2, Writer.text("second")),
                Writer.attribute(2, Writer.integer(5))))
        #expect(receipt.bundleID == "second")
    }

    @Test("A cancelled period is not the latest")
    func aCancelledPeriodIsNotTheLatest() throws {
        let receipt = try read(
            Writer.receipt(
                Writer.purchase("11", original: "10"),
                Writer.purchase(
                    Writer.attribute(1705, Writer.text("10")),
                    Writer.attribute(1708, Writer.date("2027-01-01T00:00:00Z")),
                    Writer.attribute(1712, Writer.date("2026-06-01T00:00:00Z")))))
        #expect(receipt.purchases.map(\.cancelledAt) == [nil, 1_780_272_000_000])
        #expect(receipt.latestExpiry == 1_769_904_000_000)
    }

    @Test(
        "Dates are read in every form",
        arguments: [
            ("2026-01-02T03:04:05Z", 1_767_323_045_000), ("2021-04-03T22:38:45+0300", 1_617_478_725_000),
            ("2021-04-03T22:38:45+03:00", 1_617_478_725_000), ("2021-04-03T14:08:45-0530", 1_617_478_725_000),
            ("4001-01-01T03:00:00+0300", 64_092_211_200_000), ("4001-01-01T00:00:00Z", 64_092_211_200_000),
            ("2026-01-02T03:04:05.5Z", 1_767_323_045_500), ("2026-01-02T03:04:05.123456Z", 1_767_323_045_123),
            ("1970-01-01T00:00:00Z", 0), ("1970-01-01T00:00:00+0100", nil), ("2026-01-02T03:04:05", nil),
            ("2026-01-02T03:04:05.Z", nil), ("2026-01-02T03:04:05ZZ", nil), ("2026-01-02T03:04:05+03", nil),
            ("2026-01-02T03:04:05+9900", nil), ("2026-02-30T03:04:05Z", nil), ("26-01-02T03:04:05Z", nil), ("", nil),
        ] as [(String, Int64?)])
    func dates(_ text: String, _ expected: Int64?) throws {
        #expect(try instant(Writer.date(text)) == expected)
        #expect(try instant(Writer.text(text)) == expected)
    }
}

extension LocalReceipt {
    /// The subscriptions and purchases in the receipt, each once, sorted as text.
    var originalTransactionIDs: [String] { Set(purchases.map(\.originalTransactionID)).sorted() }
}
