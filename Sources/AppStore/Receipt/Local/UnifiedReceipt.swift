/// Reads the app receipt of iOS 7 and later: attributes inside PKCS#7 signed data. It does not check the signature.
enum UnifiedReceipt {
    /// The tags from the outside in: content info, its content, signed data, its content info, its content.
    private static let wayToContent: [UInt8] = [0x30, 0xA0, 0x30, 0x30, 0xA0]
    /// The most octet strings that may wrap the attributes.
    private static let wrappingsMax = 4

    static func reading(of bytes: [UInt8]) -> LocalReading {
        guard let content = content(in: bytes, within: bytes.indices, way: wayToContent[...]) else {
            return .unreadable("a PKCS#7 structure that is cut short or damaged")
        }
        guard let octets = BEROctets(content, in: bytes), let attributes = ReceiptAttributes(in: unwrapped(octets))
        else {
            return .unreadable("PKCS#7 signed data without a receipt in it")
        }
        var draft = Draft()
        draft.read(attributes)
        guard draft.readable > 0 else { return .unreadable("a receipt without a single attribute") }
        return .read(draft.receipt)
    }

    /// Returns the element at the end of the path. An element with the right tag that leads nowhere does not stop the
    /// search.
    private static func content(in bytes: [UInt8], within stretch: Range<Int>, way: ArraySlice<UInt8>) -> BERElement? {
        var cursor = BERCursor(stretch)
        guard let tag = way.first else { return cursor.next(in: bytes) }
        while let element = cursor.next(tagged: tag, in: bytes) {
            if let found = content(in: bytes, within: element.content, way: way.dropFirst()) { return found }
        }
        return nil
    }

    /// Removes the octet strings that some signers wrap around their content once more.
    private static func unwrapped(_ octets: BEROctets) -> BEROctets {
        var octets = octets
        for _ in 0..<wrappingsMax {
            var cursor = octets.cursor
            guard let inner = cursor.next(in: octets.bytes), let content = BEROctets(inner, in: octets.bytes) else {
                return octets
            }
            octets = content
        }
        return octets
    }

    /// A receipt while its attributes are read. Of duplicate attributes, the last counts.
    private struct Draft {
        var bundleID: String?
        var bundleAttributes = 0
        var environment: String?
        var createdAt: Int64?
        var purchases: [LocalPurchase] = []
        var unreadable = 0
        var readable = 0

        mutating func read(_ attributes: ReceiptAttributes) {
            var attributes = attributes
            while let (type, value) = attributes.next() {
                readable += 1
                switch type {
                case 0: environment = value.text ?? environment
                case 2:
                    bundleID = value.text ?? bundleID
                    bundleAttributes += 1
                case 12: createdAt = value.instant ?? createdAt
                case 17: readPurchase(value)
                default: continue
                }
            }
            unreadable += attributes.unreadable
        }

        private mutating func readPurchase(_ value: BEROctets) {
            guard purchases.count < LocalReceipt.purchasesMax, var attributes = ReceiptAttributes(in: value) else {
                unreadable += 1
                return
            }
            var product: String?
            var transaction: String?
            var original: String?
            var lineItem: String?
            var expiry: Int64?
            var cancellation: Int64?
            while let (type, value) = attributes.next() {
                switch type {
                case 1702: product = value.text ?? product
                case 1703: transaction = value.identifier ?? transaction
                case 1705: original = value.identifier ?? original
                case 1708: expiry = value.instant ?? expiry
                case 1711: lineItem = value.identifier ?? lineItem
                case 1712: cancellation = value.instant ?? cancellation
                default: continue
                }
            }
            unreadable += attributes.unreadable
            guard let original = original ?? transaction else {
                unreadable += 1
                return
            }
            purchases.append(
                LocalPurchase(
                    productID: product, transactionID: transaction, originalTransactionID: original,
                    webOrderLineItemID: lineItem, expiresAt: expiry, cancelledAt: cancellation))
        }

        var receipt: LocalReceipt {
            LocalReceipt(
                form: .unified, bundleID: bundleID, bundleAttributes: bundleAttributes, environment: environment,
                createdAt: createdAt,
                purchases: purchases, unreadableParts: unreadable)
        }
    }
}
