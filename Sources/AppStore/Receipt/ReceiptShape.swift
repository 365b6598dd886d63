extension ReceiptData {
    /// The fewest bytes of any receipt: a signature alone, with the shortest key Apple used, has as many.
    public static let bytesMin = 128

    /// Throws for what Apple could only refuse: too few bytes, or neither DER nor a property list that tells of a purchase.
    ///
    /// It is lenient otherwise: a receipt of a kind we do not know is Apple's to judge.
    public func requireShape() throws(ReceiptDataError) {
        switch form {
        case .unified, .legacy: return
        case .unknown:
            guard bytes.count >= Self.bytesMin else { throw .tooShort(bytes: bytes.count) }
            guard bytes.first == Self.sequenceTag || bytes.holds(Array("purchase-info".utf8)) else {
                throw .unlikeAnyReceipt
            }
        }
    }

    /// How every PKCS#7 structure begins: X.690, section 8.9.
    private static let sequenceTag: UInt8 = 0x30
}
