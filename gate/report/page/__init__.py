"""Pages: HTML files that need nothing else, with charts drawn before; shared by reports and trends.

A page is a template below ``templates/`` and what it is filled with. Every text is escaped as it is put in;
only files of this package and drawings are not.
"""
