# A static workload in WebBench's manner: small pictures, pages, and what is not there.
DEFINE_CLASSES
    CLASS_223.gif:  20
    CLASS_6040.htm: 78
    CLASS_404:      2

DEFINE_REQUESTS
    CLASS_223.gif:
        GET /tree/1/223_1.gif
        GET /tree/2/223_1.gif
    CLASS_6040.htm:
        GET /tree/1/6040_1.htm
    CLASS_404:
        GET /tree/nowhere.htm
