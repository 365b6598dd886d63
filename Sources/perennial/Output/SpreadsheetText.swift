extension String {
    /// The text in a form that a spreadsheet displays: an apostrophe precedes a formula. A negative number is not a
    /// formula.
    ///
    /// OWASP, "CSV Injection": a formula begins with one of these characters, or with a tab or a return before it.
    var spreadsheetText: String {
        guard let first = unicodeScalars.first, "=+-@\t\r\n＝＋－＠".unicodeScalars.contains(first),
            wholeMatch(of: /-[0-9]+(\.[0-9]+)?/) == nil
        else { return self }
        return "'" + self
    }
}
