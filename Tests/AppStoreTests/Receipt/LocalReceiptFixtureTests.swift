import Foundation
import Testing

@testable import AppStore

@Suite("Our reader and a complete ASN.1 parser read the same from captured receipts")
struct LocalReceiptFixtureTests {
    /// Every file beside the package that is a receipt, binary or Base64.
    static let receipts: [(name: String, bytes: [UInt8], form: ReceiptForm)] = {
        guard Fixtures.folder != nil else {
            print("skipped: there is no folder of captured receipts beside the package")
            return []
        }
        return Fixtures.files(ending: [""]).compactMap { name, body in
            let form = ReceiptForm(sniffing: body)
            if form == .unified { return (name, body, form) }
            // Answers hold receipts too, but are none; what is not text is none either.
            guard body.first != UInt8(ascii: "{"), body.allSatisfy({ $0 < 0x80 }),
                let receipt = try? ReceiptData(normalising: String(decoding: body, as: UTF8.self)),
                receipt.form != .unknown
            else { return nil }
            return (name, receipt.bytes, receipt.form)
        }
    }()

    @Test("Every unified receipt yields what a whole parser finds")
    func everyUnifiedReceiptYieldsWhatAWholeParserFinds() throws {
        let unified = Self.receipts.filter { $0.form == .unified }
        for (name, bytes, _) in unified {
            let receipt = try #require(LocalReading(of: bytes).receipt, "\(name)")
            let second = try SecondOpinion(bytes)
            #expect(receipt.purchases.compactMap(\.transactionID) == second.texts(1703), "\(name)")
            #expect(Set(receipt.originalTransactionIDs) == Set(second.originals), "\(name)")
            #expect(receipt.purchases.compactMap(\.productID) == second.texts(1702), "\(name)")
            #expect(receipt.purchases.compactMap(\.expiresAt).count == second.texts(1708).count, "\(name)")
            #expect(receipt.purchases.compactMap(\.cancelledAt).count == second.texts(1712).count, "\(name)")
            let lineItems = second.integers(1711).filter { $0 != 0 }.map(String.init)
            #expect(receipt.purchases.compactMap(\.webOrderLineItemID) == lineItems, "\(name)")
            #expect(receipt.bundleID == second.bundleID && receipt.unreadableParts == 0, "\(name)")
        }
        print("receipts read: \(unified.count)")
        #expect(Fixtures.folder == nil || unified.count >= 34)
    }

    @Test(
        "Receipts say their app and store",
        arguments: [
            Sighting("tikhop_TPInAppReceipt/receipt-production", "org.getpure.pure-iphone", "Production", 4),
            Sighting("tikhop_TPInAppReceipt/receipt-sandbox-g5", "dev.bonzer.weeka.app", "ProductionSandbox", 2),
            Sighting("tikhop_TPInAppReceipt/receipt-sandbox-legacy", "com.nutcall.alert", "ProductionSandbox", 187),
            Sighting("tikhop_TPInAppReceipt/receipt-xcode", "net.zachariadis.cyclemaps", "Xcode", 1, 1_595_439_195_000),
            Sighting("superwall_Superwall-iOS/receipt-1.b64", "com.nutcall.alert", "Xcode", 1, 1_617_478_725_000),
            Sighting("Cocoanetics_Kvitto/storeKitTestReceipt", "com.rd.eehelper", "Xcode", 1),
            Sighting("Cocoanetics_Kvitto/sandboxReceipt", "com.cocoanetics.EmmiView", "ProductionSandbox", 6),
            Sighting(
                "namiml_nami-apple-receipt-validator/example_encoded_receipt",
                "com.nami.matthewfecher.SwiftRadio", "ProductionSandbox", 33),
            Sighting(
                "emindeniz99_apple-purchase-receipt-verifier/receipt-double-wrapped.der",
                "com.example.app", "ProductionSandbox", 2),
            Sighting("voltrue2_in-app-purchase/apple", "com.mindmobapp.MindMob", "Sandbox", 1),
            Sighting(
                "IdeasOnCanvas_AppReceiptValidator/deprecatedSinglesTypeExpiredAppleCert_receipt.b64",
                "com.mbaasy.ios.demo", "Sandbox", 1),
        ])
    func receiptsSayTheirAppAndStore(_ sighting: Sighting) throws {
        guard let file = Self.receipts.first(where: { $0.name == sighting.name }) else {
            #expect(Fixtures.folder == nil, "\(sighting.name) is missing")
            return
        }
        let receipt = try #require(LocalReading(of: file.bytes).receipt)
        #expect(receipt.bundleID == sighting.bundleID && receipt.environment == sighting.environment)
        #expect(receipt.purchases.count == sighting.purchases)
        if let createdAt = sighting.createdAt { #expect(receipt.createdAt == createdAt) }
    }

    @Test("Every legacy receipt yields its ids")
    func everyLegacyReceiptYieldsItsIds() throws {
        let legacy = Self.receipts.filter { $0.form == .legacy }
        for (name, bytes, _) in legacy {
            let receipt = try #require(LocalReading(of: bytes).receipt, "\(name)")
            #expect(receipt.transactionIDs.count == 1 && receipt.originalTransactionIDs.count == 1, "\(name)")
        }
        #expect(Fixtures.folder == nil || legacy.count >= 3)
    }
}

/// What one captured receipt is known to say.
struct Sighting: Sendable, CustomTestStringConvertible {
    let name: String
    let bundleID: String
    let environment: String
    let purchases: Int
    let createdAt: Int64?

    init(_ name: String, _ bundleID: String, _ environment: String, _ purchases: Int, _ createdAt: Int64? = nil) {
        self.name = name
        self.bundleID = bundleID
        self.environment = environment
        self.purchases = purchases
        self.createdAt = createdAt
    }

    var testDescription: String { name }
}
